/* fp8route info: what this build and this machine offer.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/manual.h"
#include "cli/output.h"
#include "cli/reason_name.h"
#include "cli/session.h"
#include "cli/text_table.h"
#include "plural.h"
#include "tool_status.h"
#include "tune/machine.h"

enum { LINE_COLUMNS = 100 };

/* Everything that is shown, gathered first. */
struct facts {
    const fp8r_context *context;
    const fp8r_device_facts *device;
    char version[32], routes_id[65];
    char identity[FP8R_MACHINE_TEXT_BYTES], user_file[FP8R_MACHINE_PATH_BYTES];
    char unused[512]; /* why the user's file is there and not in use; "" where neither */
};

static bool is_in_use(const fp8r_context *context, const char *path)
{
    const char *file;
    for (size_t i = 0; (file = fp8r_context_route_file(context, i)); i++)
        if (strcmp(file, path) == 0) return true;
    return false;
}

/* A file that cannot be used is passed over in silence, so that it is said here. */
static int find_why_unused(struct facts *facts, struct fp8r_tool_error *error)
{
    struct fp8r_route_file file;
    struct fp8r_identity identity;
    if (!*facts->user_file || access(facts->user_file, F_OK) != 0 || is_in_use(facts->context, facts->user_file))
        return FP8R_EXIT_GOOD;
    int code = fp8r_machine_identity(facts->context, &identity, error);
    if (code != FP8R_EXIT_GOOD) return code;
    if (fp8r_route_file_read(facts->user_file, &file) != FP8R_OK) {
        snprintf(facts->unused, sizeof facts->unused, "%s", fp8r_last_error());
        return FP8R_EXIT_GOOD;
    }
    (void)fp8r_identity_fits(&file.identity, &identity, facts->unused, sizeof facts->unused);
    fp8r_route_file_fini(&file);
    return FP8R_EXIT_GOOD;
}

static int gather(const fp8r_context *context, struct facts *facts, struct fp8r_tool_error *error)
{
    uint32_t version = fp8r_version();
    unsigned char id[32];
    facts->context = context;
    facts->device = fp8r_context_device(context);
    snprintf(facts->version, sizeof facts->version, "%u.%u.%u", version / 10000, version / 100 % 100,
             version % 100);
    fp8r_context_routes_id(context, id);
    for (size_t i = 0; i < sizeof id; i++)
        snprintf(facts->routes_id + 2 * i, 3, "%02x", id[i]);
    fp8r_machine_user_path(context, facts->user_file);
    int code = fp8r_machine_text(context, facts->identity, error);
    return code == FP8R_EXIT_GOOD ? find_why_unused(facts, error) : code;
}

static void set_backend(struct fp8r_output *output, json_t *object, const fp8r_backend_info *info)
{
    fp8r_output_set_text(output, object, "name", info->name);
    fp8r_output_set_text(output, object, "description", info->description);
    fp8r_output_set_text(output, object, "rev", info->rev);
    fp8r_output_set_text(output, object, "library", info->library);
    fp8r_output_set_text(output, object, "library_file", info->library_file);
    fp8r_output_set(output, object, "priority", json_integer(info->priority));
    fp8r_output_set(output, object, "built", json_boolean(info->is_built));
    fp8r_output_set(output, object, "fits", json_boolean(info->fits));
    fp8r_output_set_text(output, object, "reason_name", fp8r_reason_name_of(info->reason));
    fp8r_output_set_text(output, object, "sentence", info->sentence);
    json_t *configs = fp8r_output_add_array(output, object, "configs");
    for (size_t i = 0; info->configs[i]; i++)
        fp8r_output_append(output, configs, json_string(info->configs[i]));
}

static void set_device(struct fp8r_output *output, json_t *object, const struct facts *facts)
{
    const fp8r_device_facts *device = facts->device;
    fp8r_output_set_text(output, object, "kind", device->kind == FP8R_DEVICE_CUDA ? "cuda" : "cpu");
    fp8r_output_set(output, object, "index", json_integer(device->index));
    fp8r_output_set_text(output, object, "name", device->name);
    fp8r_output_set_text(output, object, "identity", facts->identity);
    fp8r_output_set(output, object, "arch", json_integer(device->arch));
    fp8r_output_set(output, object, "sm_count", json_integer(device->sm_count));
    fp8r_output_set(output, object, "driver", json_integer(device->driver));
    fp8r_output_set(output, object, "threads", json_integer(device->threads));
    fp8r_output_set(output, object, "l2_bytes", json_integer(device->l2_bytes));
    fp8r_output_set(output, object, "last_level_bytes", json_integer(device->last_level_bytes));
    fp8r_output_set(output, object, "bandwidth_gbs", json_integer(device->bandwidth_gbs));
}

static void set_environment(struct fp8r_output *output, json_t *object)
{
    for (const struct fp8r_manual_item *item = fp8r_manual_environment; item->name; item++)
        fp8r_output_set_text(output, object, item->name, getenv(item->name));
}

static int print_json(const struct facts *facts, struct fp8r_tool_error *error)
{
    struct fp8r_output output;
    int code = FP8R_EXIT_GOOD;
    fp8r_output_init(&output, "info");
    fp8r_output_set_text(&output, output.root, "version", facts->version);
    set_device(&output, fp8r_output_add_object(&output, output.root, "device"), facts);
    json_t *backends = fp8r_output_add_array(&output, output.root, "backends");
    for (size_t i = 0; code == FP8R_EXIT_GOOD && i < fp8r_context_backend_count(facts->context); i++) {
        fp8r_backend_info info = {.struct_size = sizeof info};
        code = fp8r_tool_status(error, fp8r_context_backend(facts->context, i, &info));
        if (code == FP8R_EXIT_GOOD) set_backend(&output, fp8r_output_append_object(&output, backends), &info);
    }
    fp8r_output_set_text(&output, output.root, "routes_id", facts->routes_id);
    fp8r_output_set_text(&output, output.root, "user_route_file", facts->user_file);
    json_t *files = fp8r_output_add_array(&output, output.root, "route_files");
    for (size_t i = 0; fp8r_context_route_file(facts->context, i); i++) {
        json_t *file = fp8r_output_append_object(&output, files);
        fp8r_output_set_text(&output, file, "path", fp8r_context_route_file(facts->context, i));
    }
    set_environment(&output, fp8r_output_add_object(&output, output.root, "environment"));
    int printed = fp8r_output_print(&output, error);
    return code == FP8R_EXIT_GOOD ? printed : code;
}

static void print_heading(const char *heading)
{
    printf("\n%s%s%s\n", fp8r_style(stdout, FP8R_STYLE_BOLD), heading, fp8r_style(stdout, FP8R_STYLE_NONE));
}

static void print_device(const struct facts *facts)
{
    const fp8r_device_facts *device = facts->device;
    printf("fp8route %s\n", facts->version);
    print_heading("Device");
    if (device->kind == FP8R_DEVICE_CUDA)
        printf("  cuda:%d, %s: sm_%d, %d multiprocessors, L2 %lld KiB, %lld GB/s, driver %d\n",
               (int)device->index, device->name, (int)device->arch, (int)device->sm_count,
               (long long)device->l2_bytes / 1024, (long long)device->bandwidth_gbs, (int)device->driver);
    else
        printf("  cpu, %s: %d thread%s, L2 %lld KiB a core, last level %lld KiB\n", device->name,
               (int)device->threads, fp8r_s((size_t)device->threads), (long long)device->l2_bytes / 1024,
               (long long)device->last_level_bytes / 1024);
    printf("  routes are tied to: %s\n", facts->identity);
}

static int print_backends(const fp8r_context *context, struct fp8r_tool_error *error)
{
    static const char *const headings[] = {"backend", "usable", "what it is"};
    struct fp8r_text_table table;
    int code = FP8R_EXIT_GOOD;
    print_heading("Backends, in the order of defaults");
    fp8r_text_table_init(&table, headings, sizeof headings / sizeof *headings);
    for (size_t i = 0; code == FP8R_EXIT_GOOD && i < fp8r_context_backend_count(context); i++) {
        fp8r_backend_info info = {.struct_size = sizeof info};
        code = fp8r_tool_status(error, fp8r_context_backend(context, i, &info));
        enum fp8r_style style = info.fits ? FP8R_STYLE_GOOD : FP8R_STYLE_DIM;
        fp8r_text_table_add(&table, style, "%s", info.name);
        fp8r_text_table_add(&table, style, "%s", info.fits ? "yes" : "no");
        fp8r_text_table_add(&table, style, "%s%s%s%s%s%s%s", info.description, *info.library ? "; " : "", info.library,
                            *info.library_file ? " of " : "", info.library_file, info.fits ? "" : ": ", info.sentence);
    }
    int printed = fp8r_text_table_print(&table, stdout, error);
    return code == FP8R_EXIT_GOOD ? printed : code;
}

/* As they are named on a command line, in lines of at most LINE_COLUMNS. */
static void print_names(const char *backend, const char *const *configs)
{
    size_t used = LINE_COLUMNS;
    for (const char *lead = "  "; *configs; configs++, lead = "\n  ") {
        const size_t length = strlen(backend) + 1 + strlen(*configs);
        const bool fits = used + 1 + length <= LINE_COLUMNS;
        used = (fits ? used + 1 : 2) + length;
        printf("%s%s:%s", fits ? " " : lead, backend, *configs);
    }
    printf("\n");
}

/* Of those that can be used here: why the others cannot stands beside their names. */
static int print_configs(const fp8r_context *context, struct fp8r_tool_error *error)
{
    print_heading("Configurations");
    for (size_t i = 0; i < fp8r_context_backend_count(context); i++) {
        fp8r_backend_info info = {.struct_size = sizeof info};
        int code = fp8r_tool_status(error, fp8r_context_backend(context, i, &info));
        if (code != FP8R_EXIT_GOOD) return code;
        if (info.fits) print_names(info.name, info.configs);
    }
    return FP8R_EXIT_GOOD;
}

static void print_routes(const struct facts *facts)
{
    print_heading("Routes");
    for (size_t i = 0; fp8r_context_route_file(facts->context, i); i++)
        printf("  in use: %s\n", fp8r_context_route_file(facts->context, i));
    if (!fp8r_context_route_file(facts->context, 0))
        printf("  none in use: fp8route tune --quick --family NxK measures some\n");
    printf("  the user's file: %s%s\n", *facts->user_file ? "" : "none, ",
           *facts->user_file ? facts->user_file : fp8r_machine_why_no_path());
    if (*facts->unused)
        printf("  not in use: %s\n", facts->unused);
    printf("  id: %s\n", facts->routes_id);
}

static void print_environment(void)
{
    print_heading("Environment");
    for (const struct fp8r_manual_item *item = fp8r_manual_environment; item->name; item++) {
        const char *value = getenv(item->name);
        printf("  %-20s %-12s %s\n", item->name, value ? value : "-", item->text);
    }
}

static int print_text(const struct facts *facts, struct fp8r_tool_error *error)
{
    print_device(facts);
    int code = print_backends(facts->context, error);
    if (code == FP8R_EXIT_GOOD) code = print_configs(facts->context, error);
    print_routes(facts);
    print_environment();
    return code;
}

static int run(const void *arguments, struct fp8r_tool_error *error)
{
    const struct fp8r_common *common = arguments;
    struct fp8r_session session;
    struct facts facts = {0};
    int code = fp8r_session_open(common, 0, &session, error);
    if (code != FP8R_EXIT_GOOD) return code;
    code = gather(session.context, &facts, error);
    if (code == FP8R_EXIT_GOOD) code = common->json ? print_json(&facts, error) : print_text(&facts, error);
    fp8r_session_close(&session);
    return code;
}

const struct fp8r_verb fp8r_verb_info = {
    .name = "info",
    .summary = "show the device, the backends, the route files and the environment",
    .words = "",
    .description = "Shows what decisions rest on: the facts of the device, every backend with its "
                   "configurations or the reason why "
                   "it cannot be used here, the route files in use and their digest (equal digests decide "
                   "alike), and the "
                   "environment variables that are understood.",
    .examples = "fp8route info\nfp8route info --json --device cuda",
    .has_context = true,
    .arguments_bytes = sizeof(struct fp8r_common),
    .run = run,
};
