/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * mthpd: command line, signals, and the order in which things start and stop.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <event2/event.h>
#include <systemd/sd-daemon.h>

#include "baseline-groups.h"
#include "baseline.h"
#include "bus.h"
#include "engine.h"
#include "footprint.h"
#include "log.h"
#include "metrics.h"
#include "replay.h"
#include "service.h"

#define DEFAULT_RUNTIME_DIR "/run/mthpd"
#define EX_USAGE 2

struct arguments {
	const char *config, *root, *runtime_dir, *replay;
	bool dry_run, no_bus, check_config, restore, restore_exit;
};

static const int signals[] = { SIGTERM, SIGINT, SIGHUP };
#define N_SIGNALS (sizeof(signals) / sizeof(signals[0]))

struct daemon {
	struct event_base *base;
	struct event *on_signal[N_SIGNALS];
	struct engine *engine;
	bool at_terminal; /* at the start */
};

static void usage(FILE *f)
{
	fputs("usage: mthpd [OPTION...]\n"
	      "Steers the sizes of large folios (mTHP) and khugepaged from memory pressure.\n\n"
	      "  --config=FILE      read FILE and FILE.d/*.conf instead of /etc/mthpd/mthpd.conf\n"
	      "  --check-config     report the faults of the configuration and exit (0 or 78)\n"
	      "  --dry-run          decide and report, write nothing\n"
	      "  --no-bus           stay away from the message bus (D-Bus)\n"
	      "  --restore[=exit]   put back what an earlier mthpd changed, and exit;\n"
	      "                     =exit: only if RestoreOnExit was yes\n"
	      "  --replay=TRACE     print what would have been decided in a recorded trace, with\n"
	      "                     its own configuration or that of --config, and exit (0, 65)\n"
	      "  --root=DIR         look for /sys and /proc below DIR\n"
	      "  --runtime-dir=DIR  socket and journal of start values (default " DEFAULT_RUNTIME_DIR ")\n"
	      "  --version, --help\n\n"
	      "Exit codes: 0, 1 (failed), 2 (usage), 65 (not a trace), 69 (nothing to steer here),\n"
	      "78 (configuration).\n",
		f);
}

/* 0 = go on, otherwise exit with *ret_code. */
static int parse_arguments(int argc, char **argv, struct arguments *a, int *ret_code)
{
	enum { CONFIG = 256, ROOT, RUNTIME, DRY, NO_BUS, CHECK, REPLAY, RESTORE, VERSION, HELP };
	static const struct option options[] = {
		{ "config", required_argument, NULL, CONFIG },
		{ "root", required_argument, NULL, ROOT },
		{ "runtime-dir", required_argument, NULL, RUNTIME },
		{ "dry-run", no_argument, NULL, DRY },
		{ "no-bus", no_argument, NULL, NO_BUS },
		{ "check-config", no_argument, NULL, CHECK },
		{ "replay", required_argument, NULL, REPLAY },
		{ "restore", optional_argument, NULL, RESTORE },
		{ "version", no_argument, NULL, VERSION },
		{ "help", no_argument, NULL, HELP },
		{ 0 },
	};
	int c;

	*ret_code = EX_USAGE;
	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		/* "--root=$UNSET" must not mean this machine. */
		if (optarg && !*optarg) {
			fprintf(stderr, "mthpd: %s: the value is empty\n", argv[optind - 1]);
			return -EINVAL;
		}
		switch (c) {
		case CONFIG:
			a->config = optarg;
			break;
		case ROOT:
			a->root = optarg && strcmp(optarg, "/") != 0 ? optarg : "";
			break;
		case RUNTIME:
			a->runtime_dir = optarg;
			break;
		case DRY:
			a->dry_run = true;
			break;
		case NO_BUS:
			a->no_bus = true;
			break;
		case CHECK:
			a->check_config = true;
			break;
		case REPLAY:
			a->replay = optarg;
			break;
		case RESTORE:
			a->restore = true;
			a->restore_exit = optarg && !strcmp(optarg, "exit");
			if (optarg && !a->restore_exit) {
				fprintf(stderr, "mthpd: --restore takes nothing or =exit\n");
				return -EINVAL;
			}
			break;
		case VERSION:
			puts("mthpd " MTHPD_VERSION);
			*ret_code = 0;
			return -ECANCELED;
		case HELP:
			usage(stdout);
			*ret_code = 0;
			return -ECANCELED;
		default:
			fprintf(stderr, "Try 'mthpd --help'.\n");
			return -EINVAL;
		}
	}
	if (a->dry_run && a->restore) {
		fprintf(stderr, "mthpd: --dry-run and --restore do not go together: a restore writes\n");
		return -EINVAL;
	}
	if (a->check_config + a->restore + (a->replay != NULL) > 1) {
		fprintf(stderr, "mthpd: --check-config, --restore and --replay do not go together\n");
		return -EINVAL;
	}
	if (optind < argc) {
		fprintf(stderr, "mthpd: unexpected argument '%s'\n", argv[optind]);
		return -EINVAL;
	}
	return 0;
}

static void on_fault(const char *file, unsigned line, const char *message, void *userdata)
{
	if (line)
		fprintf(userdata, "%s:%u: %s\n", file, line, message);
	else
		fprintf(userdata, "%s: %s\n", file, message);
}

static int check_config(const struct arguments *a)
{
	struct config *c;
	int r = config_load(a->config, a->root, on_fault, stdout, &c);

	if (r < 0)
		return r == -EINVAL ? ENGINE_EX_CONFIG : 1;
	config_free(c);
	return 0;
}

static void on_restored(const char *name, const char *outcome, const char *from, const char *to,
	int error, void *userdata)
{
	char path[GROUP_FILE_PATH_MAX];

	snprintf(path, sizeof(path), "%s", name);
	log_clean(path);
	*(bool *)userdata = true;
	if (!strcmp(outcome, "restored"))
		printf("%s: %s -> %s, restored\n", path, from, to);
	else if (!strcmp(outcome, "left") && error == ENOENT)
		printf("%s: is gone\n", path);
	else if (!strcmp(outcome, "left"))
		printf("%s: holds %s, set by somebody else: left\n", path, from);
	else
		fprintf(stderr, "%s: cannot be restored to %s: %s\n", path, to, strerror(error));
}

static int restore(const struct arguments *a)
{
	const char *warning = NULL;
	bool told = false;
	int r = baseline_restore_command(a->runtime_dir, a->root, a->restore_exit, on_restored, &told, &warning);

	if (warning)
		fprintf(stderr, "%s: %s\n", a->runtime_dir, warning);
	if (r == -EBUSY)
		fprintf(stderr, "mthpd: a daemon is running with %s; use mthpctl restore\n", a->runtime_dir);
	else if (r == -EBADMSG)
		fprintf(stderr, "mthpd: nothing was put back: the start values of the switches and of groups' "
				"memory.thp.* are in that file, if it can still be read, or come back with a reboot\n");
	else if (r < 0)
		fprintf(stderr, "mthpd: restore: %s\n", strerror(-r));
	else if (r == 0 && !told && !warning && !a->restore_exit)
		printf("nothing to put back in %s\n", a->runtime_dir);
	return r ? 1 : 0;
}

/* With CAP_SYS_RESOURCE each trigger would start a real-time kernel thread for
 * its group (kernel/sched/psi.c: psi_trigger_create looks at the opener). Only
 * windows that are not a multiple of 2 s need it. */
static void drop_sys_resource(uint64_t window_usec)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[2];

	if (window_usec % 2000000 != 0 || syscall(SYS_capget, &h, d) < 0)
		return;
	d[0].effective &= ~(1U << CAP_SYS_RESOURCE);
	if (syscall(SYS_capset, &h, d) < 0)
		log_debug("CAP_SYS_RESOURCE cannot be dropped: %s", strerror(errno));
}

/* The watcher of memory must not be its victim, nor use what it steers. */
static void protect_self(void)
{
	int r;

	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	r = footprint_lock();
	if (r < 0)
		log_debug("memory cannot be locked: %s", strerror(-r));
}

static void on_signal(evutil_socket_t sig, short what, void *userdata)
{
	struct daemon *d = userdata;
	char why[ENGINE_WHY_LEN]; /* logged already */

	(void)what;
	/* A terminal that is closed says so by SIGHUP too, and nobody is left to end us. */
	if (sig == SIGHUP && !(d->at_terminal && !isatty(STDIN_FILENO))) {
		sd_notify(0, "RELOADING=1");
		engine_reload(d->engine, why);
		sd_notify(0, "READY=1");
		return;
	}
	event_base_loopbreak(d->base);
}

/* Before anything is to be seen of mthpd: whoever sees it may end it. What comes before
 * the loop runs waits for that. */
static int catch_signals(struct daemon *d)
{
	d->at_terminal = isatty(STDIN_FILENO);
	for (size_t i = 0; i < N_SIGNALS; i++) {
		d->on_signal[i] = evsignal_new(d->base, signals[i], on_signal, d);
		if (!d->on_signal[i] || evsignal_add(d->on_signal[i], NULL) < 0)
			return 1;
	}
	return 0;
}

/* All is put back already: a second Ctrl-C, or systemd's, must not turn the exit into
 * death by a signal when libevent gives them back to the default. */
static void release_signals(struct daemon *d)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < N_SIGNALS; i++)
		sigaddset(&set, signals[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	for (size_t i = 0; i < N_SIGNALS; i++)
		if (d->on_signal[i])
			event_free(d->on_signal[i]);
}

static int run_loop(struct daemon *d)
{
	engine_start(d->engine);
	sd_notify(0, "READY=1");
	event_base_dispatch(d->base);
	sd_notify(0, "STOPPING=1");
	return engine_stop(d->engine);
}

/* A fake tree has no place on the system's bus; the address of another one says
 * that it is wanted. */
static struct bus *start_bus(const struct arguments *a, struct event_base *base, struct engine *e)
{
	const char *address = getenv("DBUS_SYSTEM_BUS_ADDRESS");
	struct bus *bus = NULL;
	int r;

	if (a->no_bus || (*a->root && !address))
		return NULL;
	r = bus_new(base, e, address, &bus);
	if (r < 0)
		log_err("message bus: %s", strerror(-r));
	return bus;
}

static int run(const struct arguments *a, struct config *config)
{
	struct engine_options o = {
		.config_file = a->config,
		.root = a->root,
		.runtime_dir = a->runtime_dir,
		.dry_run = a->dry_run,
	};
	struct varlink_server *server = NULL;
	struct metrics *metrics = NULL;
	struct bus *bus = NULL;
	struct daemon d = { .base = event_base_new() };
	int r;

	if (!d.base) {
		config_free(config);
		return 1;
	}
	r = catch_signals(&d);
	if (r == 0)
		r = engine_new(d.base, &o, config, &d.engine); /* takes config over */
	else
		config_free(config);
	if (r == 0) {
		r = metrics_new(d.base, d.engine, &metrics);
		if (r < 0)
			log_err("metrics: %s", strerror(-r));
		r = service_new(d.base, a->runtime_dir, d.engine, metrics, &server);
		if (r < 0)
			log_err("%s/org.mthpd1: %s", a->runtime_dir, strerror(-r));
		engine_print_features(d.engine);
		bus = start_bus(a, d.base, d.engine);
		r = run_loop(&d);
	}
	varlink_server_free(server);
	engine_free(d.engine);
	bus_free(bus);
	metrics_free(metrics);
	release_signals(&d);
	event_base_free(d.base);
	return r;
}

/* An answer that did not reach anybody is no answer. */
static int said(int code)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return code;
	fprintf(stderr, "mthpd: standard output: %s\n", strerror(errno));
	return code ? code : 1;
}

int main(int argc, char **argv)
{
	struct arguments a = { .root = "", .runtime_dir = DEFAULT_RUNTIME_DIR };
	struct config *config;
	int r;

	signal(SIGXFSZ, SIG_IGN); /* a limit on files (RLIMIT_FSIZE) is an error of a write, as a full disk is */
	if (parse_arguments(argc, argv, &a, &r) < 0)
		return said(r);
	if (a.check_config)
		return said(check_config(&a));
	if (a.restore)
		return said(restore(&a));
	if (a.replay)
		return said(replay_command(a.replay, a.config, stdout, stderr));
	r = config_load(a.config, a.root, on_fault, stderr, &config);
	if (r < 0) {
		fprintf(stderr, "mthpd: the configuration has faults: nothing was started, nothing was written\n");
		return r == -EINVAL ? ENGINE_EX_CONFIG : 1;
	}
	log_set_level(config->log_level);
	signal(SIGPIPE, SIG_IGN);
	drop_sys_resource(config->psi_window_usec);
	protect_self();
	return run(&a, config);
}
