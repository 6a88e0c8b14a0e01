/* The lists that every page shares: environment variables and exit codes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/manual.h"

const struct fp8r_manual_item fp8r_manual_environment[] = {
    {"FP8ROUTE_BACKEND",
     "name or name:config of the backend to prefer; a product it cannot run is dispatched as usual"},
    {"FP8ROUTE_DENY", "names of backends to leave out, with commas between them"},
    {"FP8ROUTE_TABLE", "a route file to read before those of the user, the system and the package"},
    {"FP8ROUTE_UNROUTED", "\"error\": only measured routes may decide"},
    {"FP8ROUTE_THREADS", "threads a product may use on a CPU; --threads wins over it"},
    {"FP8ROUTE_VERBOSE", "1: a line on standard error for each new decision; 2: one for each call as well"},
    {"FP8ROUTE_TRACE", "a file to which the problems met are appended, one JSON object a line; fp8route trace summary sums it up"},
    {"FP8ROUTE_PDL", "0: on a GPU, launch kernels one behind the other, without programmatic dependent launch"},
    {"FP8ROUTE_CHECK", "1: on a GPU, ask the driver at every call whether the operands lie on its device"},
    {"FP8ROUTE_CPU_MASK", "hexadecimal: processor features to pretend absent, for tests"},
    {"FP8ROUTE_BLAS", "the BLAS library to load for the blas backend"},
    {"FP8ROUTE_CUBLASLT", "the cuBLASLt library to load for the cublaslt backend"},
    {"FP8ROUTE_PROGRAM", "this program, for fp8route.tune of the Python package, which carries none"},
    {"XDG_CACHE_HOME", "where the user's route file lies, in fp8route/; HOME/.cache unless set"},
    {"NO_COLOR", "any value: no colour, not even on a terminal"},
    {NULL, NULL}};

const struct fp8r_manual_item fp8r_manual_exits[] = {
    {"0", "good"},
    {"1", "a regression, wrong values or a failed check"},
    {"2", "usage: an unknown verb, option or backend, or a problem text that cannot be read"},
    {"3", "inconclusive: the noise is wider than the question"},
    {"4", "could not measure: no such device, the backend refuses, or several could run it and no route says "
          "which"},
    {"5", "bad data: a route file, config.json, safetensors or sample file; or a file that cannot be written"},
    {"6", "an internal error, or out of memory"},
    {"75", "interrupted; the same command can be run again"},
    {NULL, NULL}};
