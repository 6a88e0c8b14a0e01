/* One word at a time. What nearly is a word (=, /, &, M) is refused with the word that was meant.
 * SPDX-License-Identifier: Apache-2.0 */
#include "rule/rule_token.h"

#include <stdbool.h>
#include <string.h>

#include "rule/rule_tree.h"

struct spelling {
    const char *text;
    enum fp8r_rule_token_kind kind;
    int64_t value;
};

/* Signs, longest first where one begins another. */
static const struct spelling signs[] = {{"<=", FP8R_TOKEN_RELATION, FP8R_RULE_LESS_EQUAL},
                                        {"<", FP8R_TOKEN_RELATION, FP8R_RULE_LESS},
                                        {">=", FP8R_TOKEN_RELATION, FP8R_RULE_GREATER_EQUAL},
                                        {">", FP8R_TOKEN_RELATION, FP8R_RULE_GREATER},
                                        {"==", FP8R_TOKEN_RELATION, FP8R_RULE_EQUAL},
                                        {"!=", FP8R_TOKEN_RELATION, FP8R_RULE_UNEQUAL},
                                        {"!", FP8R_TOKEN_BANG, 0},
                                        {"&&", FP8R_TOKEN_AND, 0},
                                        {"||", FP8R_TOKEN_OR, 0},
                                        {"+", FP8R_TOKEN_PLUS, 0},
                                        {"-", FP8R_TOKEN_MINUS, 0},
                                        {"*", FP8R_TOKEN_TIMES, 0},
                                        {"//", FP8R_TOKEN_DIVIDE, 0},
                                        {"%", FP8R_TOKEN_REMAINDER, 0},
                                        {"(", FP8R_TOKEN_OPEN, 0},
                                        {")", FP8R_TOKEN_CLOSE, 0}};

static const struct spelling words[] = {
    {"m", FP8R_TOKEN_NAME, 0},      {"n", FP8R_TOKEN_NAME, 1},     {"k", FP8R_TOKEN_NAME, 2},
    {"b", FP8R_TOKEN_NAME, 3},      {"and", FP8R_TOKEN_AND, 0},    {"or", FP8R_TOKEN_OR, 0},
    {"not", FP8R_TOKEN_NOT, 0},     {"True", FP8R_TOKEN_TRUTH, 1}, {"true", FP8R_TOKEN_TRUTH, 1},
    {"False", FP8R_TOKEN_TRUTH, 0}, {"false", FP8R_TOKEN_TRUTH, 0}};

/* Mistakes worth a word of their own; tried after the signs. */
static const struct {
    const char *text, *advice;
} mistakes[] = {{"=", "'==' to compare"}, {"/", "'//', division that rounds down"},
                {"&", "'and' or '&&'"},   {"|", "'or' or '||'"},
                {"~", "'not'"},           {"^", "'and', 'or' or a comparison"},
                {".", "whole numbers"}};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static int number_read(const char *text, struct fp8r_rule_token *token, struct fp8r_tool_error *error)
{
    const char *digits = text + token->at;
    int64_t value = 0;
    for (; is_digit(digits[token->length]); token->length++) {
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, digits[token->length] - '0', &value))
            return fp8r_tool_error_set(error, FP8R_EXIT_USAGE,
                                       "rule, character %zu: the number is beyond 64 bits, at most %lld",
                                       token->at + 1, (long long)INT64_MAX);
    }
    char after = digits[token->length];
    if (digits[0] == '0' && token->length > 1)
        return fp8r_tool_error_set(error, FP8R_EXIT_USAGE,
                                   "rule, character %zu: a decimal number does not begin with 0",
                                   token->at + 1);
    if (is_letter(after) || after == '.')
        return fp8r_tool_error_set(error, FP8R_EXIT_USAGE,
                                   "rule, character %zu: expected a whole decimal number, found '%.*s%c'",
                                   token->at + 1, (int)token->length, digits, after);
    token->kind = FP8R_TOKEN_NUMBER;
    token->value = value;
    return FP8R_EXIT_GOOD;
}

static int word_read(const char *text, struct fp8r_rule_token *token, struct fp8r_tool_error *error)
{
    const char *word = text + token->at;
    while (is_letter(word[token->length]) || is_digit(word[token->length]))
        token->length++;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strlen(words[i].text) != token->length || memcmp(words[i].text, word, token->length) != 0)
            continue;
        token->kind = words[i].kind;
        token->value = words[i].value;
        return FP8R_EXIT_GOOD;
    }
    return fp8r_tool_error_set(
        error, FP8R_EXIT_USAGE,
        "rule, character %zu: expected m, n, k, b, and, or, not, True or False, found '%.*s'", token->at + 1,
        (int)(token->length < 40 ? token->length : 40), word);
}

static int sign_read(const char *text, struct fp8r_rule_token *token, struct fp8r_tool_error *error)
{
    const char *sign = text + token->at;
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        size_t length = strlen(signs[i].text);
        if (strncmp(sign, signs[i].text, length) != 0) continue;
        token->kind = signs[i].kind;
        token->value = signs[i].value;
        token->length = length;
        return FP8R_EXIT_GOOD;
    }
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        if (*sign == *mistakes[i].text)
            return fp8r_tool_error_set(error, FP8R_EXIT_USAGE, "rule, character %zu: expected %s, found '%c'",
                                       token->at + 1, mistakes[i].advice, *sign);
    }
    return fp8r_tool_error_set(
        error, FP8R_EXIT_USAGE, "rule, character %zu: expected a comparison of m, n, k and b, found %s%.1s%s",
        token->at + 1, (unsigned char)*sign < 0x80 ? "'" : "a character that is not ASCII",
        (unsigned char)*sign < 0x80 ? sign : "", (unsigned char)*sign < 0x80 ? "'" : "");
}

int fp8r_rule_token_read(const char *text, size_t from, struct fp8r_rule_token *token,
                         struct fp8r_tool_error *error)
{
    *token = (struct fp8r_rule_token){.kind = FP8R_TOKEN_END, .at = from + strspn(text + from, " \t\r\n")};
    char first = text[token->at];
    if (first == '\0') return FP8R_EXIT_GOOD;
    if (is_digit(first)) return number_read(text, token, error);
    if (is_letter(first)) return word_read(text, token, error);
    return sign_read(text, token, error);
}
