/* A picker's answers held against what was measured: which problems it sends the wrong way, what that costs,
 * and where along M. Pure: the same samples and picks give the same results. Knows nothing of how picks are
 * made. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_AUDIT_H
#define FP8R_AUDIT_H

#include "tune/samples.h"

/* A problem, and where the picker sends it. */
struct fp8r_audit_question {
    char problem[FP8R_TEXT_BYTES], family[FP8R_TEXT_BYTES];
    struct fp8r_key key;
    int64_t m;
    double weight; /* how often it occurs */
    bool is_random;
    char pick[FP8R_LABEL_BYTES];  /* backend[:config] */
    char rival[FP8R_LABEL_BYTES]; /* backend[:config]: the only alternative; "": all are */
    char refusal[160];            /* why the pick cannot run it; "" where it can, or nobody has asked */
};

struct fp8r_audit_questions {
    struct fp8r_audit_question *items;
    size_t count, capacity;
    int mode; /* FP8R_MODE_* of keys made from problems */
};

/* A zeroed question at the end; NULL when out of memory. */
struct fp8r_audit_question *fp8r_audit_questions_add(struct fp8r_audit_questions *questions);
void fp8r_audit_questions_fini(struct fp8r_audit_questions *questions);

/* The picker is asked; with is_only, the rule's other answer becomes the only rival. Each adds problems:
 * those of a family (one that was drawn at random counts as such), those of a list of picks, and those of one
 * machine's samples, where a list's gaps are left out and its weights count before the samples' own. Exit codes: USAGE where the rule has no value at a
 * problem, BAD_DATA, INTERNAL. */
struct fp8r_picker;
struct fp8r_tune_family;
int fp8r_audit_ask_family(struct fp8r_audit_questions *questions, const struct fp8r_picker *picker,
                          bool is_only, const struct fp8r_tune_family *family, bool is_random,
                          struct fp8r_tool_error *error);
int fp8r_audit_ask_list(struct fp8r_audit_questions *questions, const struct fp8r_picker *picker,
                        struct fp8r_tool_error *error);
int fp8r_audit_ask_samples(struct fp8r_audit_questions *questions, const struct fp8r_picker *picker,
                           bool is_only, const struct samples *samples, int machine,
                           struct fp8r_tool_error *error);

enum fp8r_audit_verdict {
    FP8R_AUDIT_FINE,       /* no loss beyond the margin: surely, or as near to it as a tie */
    FP8R_AUDIT_LOST,       /* the whole interval of the loss lies beyond the margin */
    FP8R_AUDIT_OPEN,       /* looks lost, but the pairs are too few or too far apart to say so */
    FP8R_AUDIT_REFUSED,    /* the pick cannot run it, or is no candidate of these samples */
    FP8R_AUDIT_WRONG,      /* the pick's result is wrong */
    FP8R_AUDIT_UNMEASURED, /* no samples of the pick */
    FP8R_AUDIT_VERDICTS
};

/* "fine", "lost", "open", "refused", "wrong", "unmeasured". */
const char *fp8r_audit_verdict_name(enum fp8r_audit_verdict verdict);

struct fp8r_audit_rules {
    double margin;   /* 0.02: a loss of less does not count */
    int comparisons; /* the error is split over so many: problems times alternatives */
    int phase;       /* SAMPLE_AUDIT, or SAMPLE_PHASES for all */
};

struct fp8r_audit_result {
    const struct fp8r_audit_question *question;
    enum fp8r_audit_verdict verdict;
    char pick[FP8R_LABEL_BYTES];  /* whole, where it is known */
    char other[FP8R_LABEL_BYTES]; /* what the pick loses most to, or beats least; "" */
    bool is_guess;    /* the pick named a backend, and its fastest configuration was taken for its own */
    double pick_us;   /* median */
    double ratio;     /* median of pick / other: 1.3 is a loss of 30 % */
    double low, high; /* its interval at the split error; 0 and INFINITY where it bounds nothing */
    int pairs;
    bool is_settled; /* more pairs of these two would not change the verdict */
    bool is_partial; /* somebody who could run it has not raced with the pick */
    double regret;   /* against the best of the even rounds, on the odd ones; NAN: too few of them */
};

/* One question on one case (NULL: it was never measured). Exit codes: BAD_DATA, INTERNAL. */
int fp8r_audit_judge(const struct fp8r_audit_rules *rules, const struct fp8r_audit_question *question,
                     const struct sample_case *it, struct fp8r_audit_result *result,
                     struct fp8r_tool_error *error);

/* Neighbouring measured M of one family, all of them lost. */
struct fp8r_audit_stretch {
    const struct fp8r_audit_question *question;           /* the first of them */
    int64_t m_first, m_last;                              /* lost at these and at what was measured between */
    int64_t right_before, right_after;                    /* nearest measured M that are not lost; 0: none */
    char pick[FP8R_LABEL_BYTES], other[FP8R_LABEL_BYTES]; /* at its worst problem */
    double worst;                                         /* ratio there */
};

struct fp8r_audit {
    struct fp8r_audit_result *results; /* lost ones first, worst first; then by verdict and ratio */
    size_t count, verdicts[FP8R_AUDIT_VERDICTS];
    size_t judged;        /* fine, lost or open */
    double problem_share; /* of the judged problems: lost */
    double time_share; /* of the weighted time of the judged problems: what the lost ones could have saved */
    size_t regret_count;
    double regret_mean, regret_worst;     /* of problems with enough samples for it */
    struct fp8r_audit_stretch *stretches; /* by family and M */
    size_t stretch_count;
};

/* All questions on one machine's samples. The questions must live as long. Exit codes: BAD_DATA, INTERNAL. */
int fp8r_audit_init(struct fp8r_audit *audit, const struct fp8r_audit_rules *rules,
                    const struct samples *samples, int machine, const struct fp8r_audit_questions *questions,
                    struct fp8r_tool_error *error);
void fp8r_audit_fini(struct fp8r_audit *audit);

/* FAILED where anything is lost or wrong; INCONCLUSIVE where more than a tenth of the problems are open, or among the
 * `left` ones that were not begun; UNMEASURED where nothing was judged or a pick was refused; GOOD. */
int fp8r_audit_exit(const struct fp8r_audit *audit, size_t left);

#endif
