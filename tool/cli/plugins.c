/* Shared objects with backends: one symbol, fp8r_backends, a NULL-terminated list.
 * SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/session.h"

/* A name without a slash would be searched for in the system's folders, where nobody means it to be. */
static void *open_object(const char *file, struct fp8r_tool_error *error)
{
    char path[4096];
    struct stat facts;
    int length = snprintf(path, sizeof path, "%s%s", strchr(file, '/') ? "" : "./", file);
    bool is_whole = length > 0 && (size_t)length < sizeof path;
    if (is_whole && stat(path, &facts) == 0 && !S_ISREG(facts.st_mode)) { /* dlopen would wait at a pipe */
        fp8r_tool_error_set(error, FP8R_EXIT_USAGE, "--plugin: %.300s is not a regular file", path);
        return NULL;
    }
    void *handle = is_whole ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!handle) {
        const char *why = dlerror();
        fp8r_tool_error_set(error, FP8R_EXIT_USAGE, "--plugin: %s", why ? why : "the path is too long");
    }
    return handle;
}

static int add_backends(struct fp8r_plugins *plugins, const fp8r_backend *const *list,
                        struct fp8r_tool_error *error)
{
    size_t count = 0;
    while (list[count])
        count++;
    const fp8r_backend **grown = realloc(plugins->backends, (plugins->count + count) * sizeof *grown);
    if (!grown) return fp8r_tool_error_memory(error, "the plug-ins' backends");
    plugins->backends = grown;
    for (size_t i = 0; i < count; i++)
        plugins->backends[plugins->count++] = list[i];
    return FP8R_EXIT_GOOD;
}

static int add_object(struct fp8r_plugins *plugins, const char *file, struct fp8r_tool_error *error)
{
    void *handle = open_object(file, error);
    if (!handle) return FP8R_EXIT_USAGE;
    plugins->handles[plugins->handle_count++] = handle;
    void *symbol = dlsym(handle, "fp8r_backends");
    if (!symbol)
        return fp8r_tool_error_set(error, FP8R_EXIT_USAGE, "--plugin: %s has no symbol fp8r_backends", file);
    fp8r_backends_function function;
    memcpy(&function, &symbol, sizeof function); /* ISO C knows no cast from object to function pointers */
    const fp8r_backend *const *list = function();
    if (!list || !list[0])
        return fp8r_tool_error_set(error, FP8R_EXIT_USAGE, "--plugin: the list of %s is empty", file);
    return add_backends(plugins, list, error);
}

int fp8r_plugins_open(const struct fp8r_words *files, struct fp8r_plugins *plugins,
                      struct fp8r_tool_error *error)
{
    *plugins = (struct fp8r_plugins){0};
    if (files->count == 0) return FP8R_EXIT_GOOD;
    plugins->handles = calloc(files->count, sizeof *plugins->handles);
    int code = plugins->handles ? FP8R_EXIT_GOOD : fp8r_tool_error_memory(error, "the plug-ins");
    for (size_t i = 0; code == FP8R_EXIT_GOOD && i < files->count; i++)
        code = add_object(plugins, files->items[i], error);
    if (code != FP8R_EXIT_GOOD) fp8r_plugins_close(plugins);
    return code;
}

void fp8r_plugins_close(struct fp8r_plugins *plugins)
{
    free(plugins->backends);
    for (size_t i = 0; i < plugins->handle_count; i++)
        dlclose(plugins->handles[i]);
    free(plugins->handles);
    *plugins = (struct fp8r_plugins){0};
}
