/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "config.h"
#include "ctl-text.h"
#include "ctl-top.h"

struct verb {
	const char *name, *arguments, *help;
	int max_args;
	bool count, pid; /* takes -n, --pid */
	int (*run)(const struct ctl *ctl);
};

static const struct verb verbs[] = {
	{"status", "[-n N]", "state, sizes and the N (10) worst groups", 0, true, false,
		ctl_status},
	{"top", "[-n N]", "the same, live; q quits, s sorts, j and k scroll", 0, true, false,
		ctl_top},
	{"explain", "[CGROUP | --pid=PID]", "why the current settings stand", 1, false, true,
		ctl_explain},
	{"history", "[-n N]", "the last N (20) decisions, newest first", 0, true, false,
		ctl_history},
	{"features", "", "what the kernel offers, as far as mthpd can tell", 0, false, false,
		ctl_features},
	{"verify", "", "differences between wanted and actual values", 0, false, false, ctl_verify},
	{"check-config", "[FILE]", "faults of the configuration, or of FILE", 1, false, false,
		ctl_check_config},
	{"reload", "", "read the configuration again", 0, false, false, ctl_reload},
	{"hold", "[REASON]", "freeze all switches, over a restart too", 1, false, false, ctl_hold},
	{"release", "[COOKIE]", "end that hold, or all", 1, false, false, ctl_release},
	{"restore", "", "put the start values back, and hold", 0, false, false, ctl_restore},
	{"record", "-o TRACE [OPTION...]", "what the loop sees and decides, into a file", 0, false,
		false, ctl_record},
	{"replay", "TRACE [--config=FILE]", "what a policy would have decided", 1, false, false,
		ctl_replay},
	{"plot", "TRACE -o FILE.svg", "pressure, sizes and decisions as a picture", 1, false, false,
		ctl_plot},
	{"metrics", "", "everything in the text format of Prometheus", 0, false, false,
		ctl_metrics},
};

static void print_help(FILE *out)
{
	fputs("usage: mthpctl [--socket=PATH] [--json] VERB ...\n"
	      "Asks mthpd, which steers the sizes of large folios, and tells it what to do.\n"
	      "\n",
		out);
	for (size_t i = 0; i < ELEMENTSOF(verbs); i++) {
		int used = fprintf(out, "  %s %s", verbs[i].name, verbs[i].arguments);

		fprintf(out, "%*s%s\n", used < 31 ? 31 - used : 1, "", verbs[i].help);
	}
	fputs("\n"
	      "  --socket=PATH               where mthpd listens (" CTL_SOCKET_DEFAULT ")\n"
	      "  --json                      print the answer as JSON\n"
	      "  --help, --version\n"
	      "  record: -o FILE, --duration=T (until it is interrupted), --max-size=S (64M),\n"
	      "          --anonymize (names of groups and policies are replaced)\n"
	      "\n"
	      "CGROUP is a path below /sys/fs/cgroup, with or without that; put -- before one\n"
	      "that begins with a dash. Exit codes: 0, 1 (the answer is no, or an error),\n"
	      "2 (usage), 69 (mthpd cannot be reached), 77 (not permitted).\n",
		out);
}

void ctl_complain(const struct ctl *ctl, const char *format, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list ap;
	int n;

	va_start(ap, format);
	n = vasprintf(&text, format, ap);
	va_end(ap);
	if (n < 0) {
		text = NULL;
		return;
	}
	fputs("mthpctl: ", ctl->err);
	ctl_put_line(ctl->err, text);
	fputc('\n', ctl->err);
}

static int usage_fault(const struct ctl *ctl, const char *what, const char *which)
{
	ctl_complain(
		ctl, "%s%s%s (try mthpctl --help)", what, which ? ": " : "", which ? which : "");
	return CTL_USAGE;
}

static const struct verb *find_verb(const char *name)
{
	for (size_t i = 0; i < ELEMENTSOF(verbs); i++) {
		if (!strcmp(verbs[i].name, name))
			return &verbs[i];
	}
	return NULL;
}

static int unknown_verb(const struct ctl *ctl, const char *typed)
{
	const char *nearest = NULL;
	unsigned distance, best = UINT_MAX;

	for (size_t i = 0; i < ELEMENTSOF(verbs); i++) {
		if (config_text_near(typed, verbs[i].name, &distance) && distance < best) {
			best = distance;
			nearest = verbs[i].name;
		}
	}
	if (!nearest)
		return usage_fault(ctl, "unknown verb", typed);
	ctl_complain(ctl, "unknown verb: %s; did you mean %s?", typed, nearest);
	return CTL_USAGE;
}

/* A whole number in [0, INT_MAX]; -1 for anything else. */
static long parse_count(const char *text)
{
	char *end;
	long n;

	errno = 0;
	n = strtol(text, &end, 10);
	return errno == 0 && end != text && *end == '\0' && n >= 0 && n <= INT_MAX ? n : -1;
}

enum {
	OPT_SOCKET = 256,
	OPT_JSON,
	OPT_PID,
	OPT_HELP,
	OPT_VERSION,
	OPT_DURATION,
	OPT_MAX_SIZE,
	OPT_ANONYMIZE,
	OPT_CONFIG,
};

static bool takes_value(int option)
{
	return option != OPT_JSON && option != OPT_ANONYMIZE && option != OPT_HELP && option != OPT_VERSION &&
	       option != ':' && option != '?';
}

/* Returns -1 to go on, or the exit code. */
static int take_option(struct ctl *ctl, int option, char **argv)
{
	if (takes_value(option) && !*optarg)
		return usage_fault(ctl, "the value is empty", argv[optind - 1]);
	switch (option) {
	case OPT_SOCKET:
		ctl->socket = optarg;
		return -1;
	case OPT_JSON:
		ctl->json = true;
		return -1;
	case OPT_PID:
		ctl->pid = optarg;
		return parse_count(optarg) > 0 ? -1
					       : usage_fault(ctl, "not a process number", optarg);
	case 'o':
		ctl->output = optarg;
		return -1;
	case OPT_DURATION:
		ctl->duration = optarg;
		return -1;
	case OPT_MAX_SIZE:
		ctl->max_size = optarg;
		return -1;
	case OPT_ANONYMIZE:
		ctl->anonymize = true;
		return -1;
	case OPT_CONFIG:
		ctl->config = optarg;
		return -1;
	case 'n':
		ctl->count = parse_count(optarg);
		return ctl->count >= 0 ? -1 : usage_fault(ctl, "-n needs a number", optarg);
	case OPT_HELP:
		print_help(ctl->out);
		return CTL_OK;
	case OPT_VERSION:
		fprintf(ctl->out, "mthpctl %s\n", MTHPD_VERSION);
		return CTL_OK;
	case ':':
		return usage_fault(ctl, "an argument is missing", argv[optind - 1]);
	default:
		return usage_fault(ctl, "unknown option", argv[optind - 1]);
	}
}

/* Options that only verbs about traces take. */
static int check_trace_use(const struct ctl *ctl, const struct verb *v)
{
	bool record = v->run == ctl_record, replay = v->run == ctl_replay, plot = v->run == ctl_plot;

	if (ctl->output && !record && !plot)
		return usage_fault(ctl, "-o is not for", v->name);
	if ((ctl->duration || ctl->max_size || ctl->anonymize) && !record)
		return usage_fault(ctl, "--duration, --max-size and --anonymize are not for", v->name);
	if (ctl->config && !replay)
		return usage_fault(ctl, "--config is not for", v->name);
	if (!ctl->output && (record || plot))
		return usage_fault(ctl, "-o FILE is missing for", v->name);
	if (ctl->n_args == 0 && (replay || plot))
		return usage_fault(ctl, "a trace is missing for", v->name);
	return -1;
}

static int check_use(const struct ctl *ctl, const struct verb *v)
{
	if (ctl->n_args > v->max_args)
		return usage_fault(ctl, "too many arguments for", v->name);
	if (ctl->count >= 0 && !v->count)
		return usage_fault(ctl, "-n is not for", v->name);
	if (ctl->pid && !v->pid)
		return usage_fault(ctl, "--pid is not for", v->name);
	if (ctl->pid && ctl->n_args > 0)
		return usage_fault(ctl, "either a cgroup or --pid", NULL);
	return check_trace_use(ctl, v);
}

int ctl_main(int argc, char **argv, FILE *out, FILE *err)
{
	static const struct option options[] = {
		{"socket", required_argument, NULL, OPT_SOCKET},
		{"json", no_argument, NULL, OPT_JSON},
		{"pid", required_argument, NULL, OPT_PID},
		{"duration", required_argument, NULL, OPT_DURATION},
		{"max-size", required_argument, NULL, OPT_MAX_SIZE},
		{"anonymize", no_argument, NULL, OPT_ANONYMIZE},
		{"config", required_argument, NULL, OPT_CONFIG},
		{"help", no_argument, NULL, OPT_HELP},
		{"version", no_argument, NULL, OPT_VERSION},
		{NULL, 0, NULL, 0},
	};
	struct ctl ctl = {.out = out, .err = err, .socket = CTL_SOCKET_DEFAULT, .count = -1};
	const struct verb *v;
	int option, code;

	optind = 0; /* glibc: from the beginning, also the second time */
	opterr = 0;
	while ((option = getopt_long(argc, argv, ":n:o:", options, NULL)) >= 0) {
		code = take_option(&ctl, option, argv);
		if (code >= 0)
			return code;
	}
	if (optind >= argc)
		return usage_fault(&ctl, "a verb is missing", NULL);
	ctl.verb = argv[optind];
	ctl.args = argv + optind + 1;
	ctl.n_args = argc - optind - 1;
	v = find_verb(ctl.verb);
	if (!v)
		return unknown_verb(&ctl, ctl.verb);
	code = check_use(&ctl, v);
	return code >= 0 ? code : v->run(&ctl);
}
