#!/usr/bin/env python3
"""The numbers on a report's page against the raw samples: check_report.py SAMPLES PAGE. Reads the page as a browser would
and computes every number anew. SPDX-License-Identifier: Apache-2.0"""
import collections
import html.parser
import json
import re
import statistics
import sys


class Page(html.parser.HTMLParser):
    """Titles of the map's cells, rows of the tables, and tags that were not closed."""

    def __init__(self):
        super().__init__()
        self.open, self.titles, self.rows, self.texts, self.borders = [], [], [], [], 0

    def handle_starttag(self, tag, attributes):
        self.borders += ("class", "border") in attributes
        if tag not in ("meta", "rect", "line", "circle", "path", "polyline", "br", "link"):
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th", "title", "h2"):
            self.texts = []

    def handle_endtag(self, tag):
        if tag in ("rect", "line", "circle", "path", "polyline"):
            return
        assert self.open and self.open.pop() == tag, "</%s> closes nothing" % tag
        if tag in ("td", "th"):
            self.rows[-1].append("".join(self.texts))
        if tag == "title":
            self.titles.append("".join(self.texts))

    def handle_data(self, data):
        self.texts.append(data)


def same(printed, value):
    """Is value what was printed, to the digits that were printed?"""
    digits = len(printed.partition(".")[2])
    return abs(float(printed) - value) <= 0.5000001 * 10 ** -digits


def main():
    samples, cases = collections.defaultdict(list), {}
    count = 0
    for line in open(sys.argv[1]):
        record = json.loads(line)
        if record["record"] == "case":
            cases[record["case"]] = record
        elif record["record"] == "sample":
            count += 1
            samples[record["case"], record["candidate"]].append(record["us"])
    page = Page()
    page.feed(open(sys.argv[2], encoding="utf-8").read())
    assert not page.open, "left open: %s" % page.open
    by_name = {case["problem"]: case for case in cases.values()}
    seen, choices = set(), collections.defaultdict(dict)
    for title in page.titles:
        found = re.match(r"(\S+): (\S+), ([0-9.]+) us, (clear|tie|noisy)$", title)
        if not found:
            continue
        problem, backend, time, _ = found.groups()
        m, _, family = problem.partition("x")
        choices[family][int(m)] = backend
        case = by_name[problem]
        names = [candidate["name"] for candidate in case["candidates"]]
        median = statistics.median(samples[case["case"], names.index(backend)])
        assert same(time, median), "%s: the page says %s, the samples %f" % (problem, time, median)
        seen.add(problem)
    assert seen == set(by_name), "not on the map: %s" % (set(by_name) - seen)
    by_m = [[choice for _, choice in sorted(family.items())] for family in choices.values()]
    switches = sum(left != right for row in by_m for left, right in zip(row, row[1:]))
    assert page.borders == switches > 0, "%d red lines, %d changes of the choice" % (page.borders, switches)
    facts = {row[0]: row[1] for row in page.rows if len(row) == 2}
    families = {problem.partition("x")[2] for problem in by_name}
    wanted = "%d families, %d problems, %d samples" % (len(families), len(by_name), count)
    assert facts["measured"] == wanted, "%r is not %r" % (facts["measured"], wanted)


main()
