/* fp8route shapes: the products a model asks for, from its config.json or its checkpoint's headers.
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>

#include "cli/output.h"
#include "cli/text_table.h"
#include "cli/verb.h"
#include "model/model_shapes.h"

struct shapes_arguments {
    struct fp8r_common common;
    const char *hf_config, *tp;
    struct fp8r_words safetensors;
    bool unfused;
};

static void print_row(struct fp8r_text_table *table, const struct fp8r_projection *layer)
{
    enum fp8r_style style = layer->is_lookup ? FP8R_STYLE_DIM : FP8R_STYLE_NONE;
    fp8r_text_table_add(table, style, "%" PRId64, layer->tp);
    fp8r_text_table_add(table, style, "%s", layer->name);
    fp8r_text_table_add(table, style, "%" PRId64, layer->n);
    fp8r_text_table_add(table, style, "%" PRId64, layer->k);
    fp8r_text_table_add(table, style, "%" PRId64, layer->count);
    fp8r_text_table_add(table, style, "%s", layer->type ? layer->type : "-");
    if (layer->is_lookup)
        fp8r_text_table_add(table, style, "- (embedding, looked up)");
    else
        fp8r_text_table_add(table, style, "%" PRId64 "x%" PRId64, layer->n, layer->k);
}

static int print_text(const struct fp8r_projection_list *layers, const struct fp8r_projection_list *families,
                      struct fp8r_tool_error *error)
{
    static const char *const headings[] = {">tp", "layer", ">N", ">K", ">count", "stored", "family"};
    struct fp8r_text_table table;
    fp8r_text_table_init(&table, headings, sizeof headings / sizeof *headings);
    for (size_t i = 0; i < layers->count; i++)
        print_row(&table, &layers->items[i]);
    int code = fp8r_text_table_print(&table, stdout, error);
    if (code != FP8R_EXIT_GOOD || families->count == 0) return code;
    printf("\nto tune them: fp8route tune --family");
    for (size_t i = 0; i < families->count; i++)
        printf(" %s", families->items[i].name);
    printf("\n");
    return FP8R_EXIT_GOOD;
}

static void set_layer(struct fp8r_output *output, json_t *object, const struct fp8r_projection *layer)
{
    char family[48];
    (void)snprintf(family, sizeof family, "%" PRId64 "x%" PRId64, layer->n, layer->k);
    fp8r_output_set(output, object, "tp", json_integer(layer->tp));
    fp8r_output_set_text(output, object, "name", layer->name);
    fp8r_output_set(output, object, "n", json_integer(layer->n));
    fp8r_output_set(output, object, "k", json_integer(layer->k));
    fp8r_output_set(output, object, "count", json_integer(layer->count));
    fp8r_output_set_text(output, object, "stored", layer->type);
    fp8r_output_set_text(output, object, "use", layer->is_lookup ? "lookup" : "product");
    fp8r_output_set_text(output, object, "family", layer->is_lookup ? NULL : family);
}

static void set_tensor(struct fp8r_output *output, json_t *object, const struct fp8r_checkpoint_tensor *found)
{
    const struct fp8r_tensor *tensor = found->tensor;
    fp8r_output_set_text(output, object, "name", tensor->name);
    fp8r_output_set_text(output, object, "dtype", tensor->type->name);
    json_t *shape = fp8r_output_add_array(output, object, "shape");
    for (size_t i = 0; i < tensor->rank; i++)
        fp8r_output_append(output, shape, json_integer(tensor->shape[i]));
    fp8r_output_set_text(output, object, "role", fp8r_tensor_role_name(fp8r_tensor_role(tensor)));
    fp8r_output_set_text(output, object, "file", found->path);
    fp8r_output_set(output, object, "begin", json_integer((json_int_t)tensor->begin_bytes));
    fp8r_output_set(output, object, "end", json_integer((json_int_t)tensor->end_bytes));
}

static int print_json(const struct fp8r_model *model, const struct fp8r_projection_list *layers,
                      const struct fp8r_projection_list *families, struct fp8r_tool_error *error)
{
    struct fp8r_output output;
    fp8r_output_init(&output, "shapes");
    fp8r_output_set_text(&output, output.root, "model_type",
                         model->is_config ? model->config.model_type : NULL);
    json_t *shapes = fp8r_output_add_array(&output, output.root, "shapes");
    for (size_t i = 0; i < layers->count; i++)
        set_layer(&output, fp8r_output_append_object(&output, shapes), &layers->items[i]);
    json_t *names = fp8r_output_add_array(&output, output.root, "families");
    for (size_t i = 0; i < families->count; i++)
        fp8r_output_append(&output, names, json_string(families->items[i].name));
    json_t *tensors = fp8r_output_add_array(&output, output.root, "tensors");
    for (size_t i = 0; i < model->checkpoint.count; i++)
        set_tensor(&output, fp8r_output_append_object(&output, tensors), &model->checkpoint.tensors[i]);
    return fp8r_output_print(&output, error);
}

static int print_model(const struct fp8r_model *model, const struct shapes_arguments *shapes,
                       struct fp8r_tool_error *error)
{
    struct fp8r_projection_list layers = {0}, families = {0};
    int code = fp8r_model_shapes(model, shapes->tp, !shapes->unfused, &layers, error);
    if (code == FP8R_EXIT_GOOD) code = fp8r_projection_list_families(&layers, &families, error);
    if (code == FP8R_EXIT_GOOD)
        code = shapes->common.json ? print_json(model, &layers, &families, error)
                                   : print_text(&layers, &families, error);
    fp8r_projection_list_fini(&families);
    fp8r_projection_list_fini(&layers);
    return code;
}

static int run(const void *arguments, struct fp8r_tool_error *error)
{
    const struct shapes_arguments *shapes = arguments;
    struct fp8r_model model = {0};
    if (shapes->unfused && !shapes->hf_config)
        return fp8r_tool_error_set(
            error, FP8R_EXIT_USAGE,
            "--unfused goes with --hf-config: a checkpoint's layers are listed as stored");
    int code = fp8r_model_open(shapes->hf_config, shapes->safetensors.items, shapes->safetensors.count,
                               &model, error);
    if (code == FP8R_EXIT_GOOD) code = print_model(&model, shapes, error);
    fp8r_model_fini(&model);
    return code;
}

#define FIELD(name) offsetof(struct shapes_arguments, name)

static const struct fp8r_option options[] = {
    {"hf-config", "config.json", "the model's config.json (Llama, Mistral, Qwen2, Qwen3, Gemma 1 to 3)",
     FP8R_OPTION_TEXT, FIELD(hf_config), 0},
    {"safetensors", "FILE", "the model's safetensors files, or its model.safetensors.index.json",
     FP8R_OPTION_LIST, FIELD(safetensors), 0},
    {"tp", "LIST",
     "tensor-parallel degrees, such as 1,2,8; one rank's share is listed for each; 1 unless given",
     FP8R_OPTION_TEXT, FIELD(tp), 0},
    {"unfused", NULL, "list q, k, v and gate, up one by one instead of joined", FP8R_OPTION_FLAG,
     FIELD(unfused), 0}};

const struct fp8r_verb fp8r_verb_shapes = {
    .name = "shapes",
    .summary = "list the matrix products of a model",
    .words = "",
    .description = "Lists the linear layers of a model: output features N, input features K, how often the "
                   "layer occurs, and the "
                   "family text NxK that tune takes; a problem is MxNxK.\n\n"
                   "From a config.json the layers follow from its fields. Key and value heads are replicated "
                   "where there are fewer "
                   "of them than ranks. From safetensors files the layers are those of the headers, exact "
                   "for any model, with "
                   "numbers in names replaced by *; above a degree of 1 the layers whose names say how they "
                   "are shared out are, "
                   "the others stay whole. --json adds every tensor with its type, shape, role and place.",
    .examples = "fp8route shapes --hf-config config.json --tp 1,2,8\n"
                "fp8route shapes --safetensors model.safetensors.index.json",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .arguments_bytes = sizeof(struct shapes_arguments),
    .run = run,
};
