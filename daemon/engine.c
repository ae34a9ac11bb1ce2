/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Life and ticks of the engine. See engine.h for the way of a sample.
 */
#include "engine-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <systemd/sd-daemon.h>

#include "cleanup.h"
#include "footprint.h"
#include "journal.h"
#include "log.h"

#define THP_DIR "sys/kernel/mm/transparent_hugepage"

uint64_t engine_now_usec(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/* ---- what is wrong, said once ------------------------------------------ */

void engine_degrade(struct engine *e, const char *key, const char *format, ...)
{
	char text[sizeof(e->degraded[0].text)];
	unsigned i = 0;
	va_list ap;

	while (i < e->n_degraded && strcmp(e->degraded[i].key, key) != 0)
		i++;
	if (i == DEGRADED_MAX)
		return;
	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	if (i < e->n_degraded && !strcmp(e->degraded[i].text, text))
		return;
	memcpy(e->degraded[i].text, text, sizeof(text));
	if (i == e->n_degraded) {
		snprintf(e->degraded[i].key, sizeof(e->degraded[0].key), "%s", key);
		e->n_degraded++;
		log_warning("%s", text);
	}
	engine_tell_changed(e);
}

void engine_undegrade(struct engine *e, const char *key)
{
	for (unsigned i = 0; i < e->n_degraded; i++)
		if (!strcmp(e->degraded[i].key, key)) {
			memmove(&e->degraded[i], &e->degraded[i + 1],
				(e->n_degraded - i - 1) * sizeof(e->degraded[0]));
			e->n_degraded--;
			engine_tell_changed(e);
			return;
		}
}

static void degrade_capability(const char *word, const char *found, const char *remedy, void *userdata)
{
	/* What a person can mend; the rest is only told by `mthpctl features`. */
	if (*remedy && strcmp(word, "writable") != 0)
		engine_degrade(userdata, word, "%s: %s (%s)", word, found, remedy);
}

void engine_degrade_capabilities(struct engine *e)
{
	caps_describe(&e->caps, degrade_capability, e);
}

int engine_observe(struct engine *e, const struct engine_observer *o)
{
	if (e->n_observers == ENGINE_OBSERVERS_MAX)
		return -ENOSPC;
	e->observers[e->n_observers++] = o;
	return 0;
}

void engine_tell_changed(struct engine *e)
{
	for (unsigned i = 0; i < e->n_observers; i++)
		if (e->observers[i]->changed)
			e->observers[i]->changed(e->observers[i]->userdata);
}

/* ---- ticks ------------------------------------------------------------- */

static void arm(struct event *ev, uint64_t usec)
{
	struct timeval tv = { .tv_sec = (time_t)(usec / 1000000), .tv_usec = (suseconds_t)(usec % 1000000) };

	evtimer_add(ev, &tv);
}

static uint64_t usec_of(const struct timeval *tv)
{
	return (uint64_t)tv->tv_sec * 1000000 + (uint64_t)tv->tv_usec;
}

void engine_schedule(struct engine *e)
{
	uint64_t now = engine_now_usec(), due, host;

	if (!e->ready || e->stopped)
		return;
	due = engine_groups_due(e, now);
	host = hostrules_wake_usec(&e->loop->host, &e->loop->plan, now);
	if (due == VALUE_ABSENT && host == VALUE_ABSENT) {
		evtimer_del(e->tick);
		return;
	}
	if (due == 0) {
		/* A tick that is already due soon stays where it is. */
		struct timeval tv;

		if (evtimer_pending(e->tick, &tv)) {
			struct timeval cur;

			event_base_gettimeofday_cached(e->base, &cur);
			if (usec_of(&tv) <= usec_of(&cur) + e->config->interval_usec)
				return;
		}
		arm(e->tick, e->config->interval_usec);
		return;
	}
	due = value_min(due, host);
	arm(e->tick, due > now ? due - now : 1);
}

static void begin(struct engine *e, uint64_t now_usec)
{
	engine_sample_begin(e, now_usec);
	loop_begin(e->loop, now_usec);
}

static void on_trim(evutil_socket_t fd, short what, void *userdata)
{
	struct engine *e = userdata;

	(void)fd;
	(void)what;
	e->wakeups++;
	footprint_trim();
}

void engine_trim_later(struct engine *e)
{
	if (!evtimer_pending(e->trim, NULL))
		arm(e->trim, TRIM_USEC);
}

/* @always: writes what is wanted even if it was wanted before. */
static void decide(struct engine *e, bool always)
{
	bool held = engine_held(e) != NULL;
	bool applies = loop_decide(e->loop, held) || always;

	engine_tell_unclear(e);
	engine_sample_end(e, held, always, applies);
	if (applies)
		engine_apply(e);
}

static void tick(struct engine *e)
{
	uint64_t now = engine_now_usec();
	bool foreign = e->loop->foreign;

	begin(e, now);
	e->loop->foreign = foreign;
	engine_sample_host(e, now);
	if (e->looks_pending)
		e->looks_pending = engine_look_at_more(e, now);
	engine_observe_groups(e, now);
	decide(e, false);
	engine_retire(e, now);
}

static void on_tick(evutil_socket_t fd, short what, void *userdata)
{
	struct engine *e = userdata;

	(void)fd;
	(void)what;
	e->wakeups++;
	tick(e);
	if (!engine_groups_due(e, engine_now_usec())) {
		arm(e->tick, e->config->interval_usec);
		return;
	}
	/* After a pause, differences of host counters would span it. */
	hostrules_rebase(&e->loop->host);
	engine_schedule(e);
}

static void on_hurry(evutil_socket_t fd, short what, void *userdata)
{
	struct engine *e = userdata;
	uint64_t now = engine_now_usec();

	(void)fd;
	(void)what;
	e->wakeups++;
	begin(e, now);
	engine_observe_hurried(e, now);
	decide(e, false);
	engine_schedule(e);
}

void engine_hurry(struct engine *e)
{
	if (e->ready && !e->stopped && !evtimer_pending(e->hurry, NULL))
		arm(e->hurry, HURRY_USEC);
}

static void notify_status(struct engine *e)
{
	unsigned hurt = 0;

	for (size_t i = 0; i < e->loop->n_groups; i++)
		hurt += e->loop->groups[i]->wish.hurt;
	sd_notifyf(0, "WATCHDOG=1\nSTATUS=%s%zu cgroups, %u hurt, %" PRIu64 " decisions%s%s",
		engine_held(e) ? "held; " : e->dry_run ? "dry run; " : "",
		e->tree ? tree_count(e->tree) - 1 : (size_t)1, hurt, e->loop->decisions,
		e->n_degraded ? "; degraded: " : "", e->n_degraded ? e->degraded[0].text : "");
}

static void on_audit(evutil_socket_t fd, short what, void *userdata)
{
	struct engine *e = userdata;
	uint64_t now = engine_now_usec();
	bool again;

	(void)fd;
	(void)what;
	e->wakeups++;
	again = engine_audit_files(e);
	if (!evtimer_pending(e->tick, NULL))
		engine_look_at_host(e, now);
	engine_audit_groups(e, now);
	begin(e, now);
	decide(e, again && !engine_held(e));
	notify_status(e);
	arm(e->audit, e->audit_usec);
	engine_schedule(e);
}

/* ---- life -------------------------------------------------------------- */

static int open_directories(struct engine *e)
{
	e->root_fd = open(*e->root ? e->root : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (e->root_fd < 0) {
		log_err("--root=%s cannot be opened: %s; it takes a directory that holds sys and proc",
			*e->root ? e->root : "/", strerror(errno));
		return ENGINE_EX_UNAVAILABLE;
	}
	e->thp_fd = openat(e->root_fd, THP_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (e->thp_fd < 0) {
		log_err("this kernel has no transparent huge pages (%s/" THP_DIR ": %s): there is "
			"nothing to steer; use a kernel with CONFIG_TRANSPARENT_HUGEPAGE=y",
			e->root, strerror(errno));
		return ENGINE_EX_UNAVAILABLE;
	}
	return 0;
}

static int read_tree(struct engine *e)
{
	unsigned page_kb = (unsigned)(sysconf(_SC_PAGESIZE) / 1024);

	if (*e->root)
		page_kb = thp_guess_page_kb(e->thp_fd, page_kb);
	if (thp_tree_read(e->thp_fd, page_kb, &e->tree_base) < 0) {
		log_err("%s/" THP_DIR " holds no switch that mthpd knows: there is nothing to steer", e->root);
		return ENGINE_EX_UNAVAILABLE;
	}
	caps_probe(e->root, e->root_fd, &e->tree_base, &e->caps);
	return 0;
}

static void open_cgroups(struct engine *e)
{
	const char *mount = e->caps.cgroup_mount;

	e->cg_fd = -1;
	if (e->caps.cgroup_mode == HOST_CGROUP_V2) {
		while (*mount == '/')
			mount++;
		e->cg_fd = openat(e->root_fd, *mount ? mount : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (e->cg_fd < 0) {
			e->caps.cgroup_errno = errno;
			e->caps.cgroup_mode = HOST_CGROUP_UNREACHABLE;
		}
	}
}

/* Without cgroup v2 one pseudo-group stands for the machine. */
static int make_host_group(struct engine *e)
{
	if (e->cg_fd >= 0)
		return 0;
	e->host = calloc(1, sizeof(*e->host));
	if (!e->host)
		return -ENOMEM;
	e->host->id = 1;
	e->host->path = strdup("");
	e->host->name = e->host->path;
	e->host->kind = NODE_UNIT;
	e->host->group = e->host->path ? loop_group_add(e->loop, 1, e->host->path) : NULL;
	if (!e->host->group)
		return -ENOMEM;
	e->host->group->owner = e->host;
	return 0;
}

static int open_baseline(struct engine *e)
{
	const char *warning = NULL;
	int r = baseline_open(e->runtime_dir, e->root, &e->baseline, &warning);

	if (r == -EBUSY) {
		log_err("another mthpd is running with %s: it has to stop first (systemctl stop mthpd, or "
			"Ctrl-C at its terminal)", e->runtime_dir);
		return 1;
	}
	if (r == -EXDEV) {
		log_err("%s/baseline.json holds the start values of another --root: put those back first (mthpd "
			"--restore with that --root), or give another --runtime-dir", e->runtime_dir);
		return 1;
	}
	if (r < 0) {
		log_err("%s: %s%s", e->runtime_dir, strerror(-r),
			r == -EACCES || r == -EPERM ? " (mthpd is to be run as root)" : "");
		return 1;
	}
	if (warning == journal_of_another_boot)
		log_warning("%s: %s", e->runtime_dir, warning);
	else if (warning)
		engine_degrade(e, "journal-ignored", "%.80s/%s (kept with .ignored behind its name): what the run before it "
			"left in switches and groups' files counts as start values; set right what is wrong there, or "
			"reboot, and restart mthpd", e->runtime_dir, warning);
	baseline_set_restore_on_exit(e->baseline, e->config->restore_on_exit);
	if (baseline_hold(e->baseline))
		log_warning("held: %s (mthpctl release ends it)", baseline_hold(e->baseline));
	return 0;
}

/* The audit also feeds the watchdog: twice as often as it asks for. */
static void choose_audit(struct engine *e)
{
	uint64_t watchdog = 0;

	e->audit_usec = e->config->audit_usec;
	if (sd_watchdog_enabled(0, &watchdog) > 0 && watchdog && e->audit_usec > watchdog / 2) {
		e->audit_usec = watchdog / 2;
		log_warning("AuditInterval is shortened to %" PRIu64 " s: WatchdogSec asks for it",
			e->audit_usec / 1000000);
	}
}

static int init(struct engine *e)
{
	int r = open_directories(e);

	if (r)
		return r;
	r = read_tree(e);
	if (r)
		return r;
	engine_look_at_host(e, engine_now_usec());
	e->min_free_kbytes = e->host_now.min_free_kbytes;
	open_cgroups(e);
	r = open_baseline(e);
	if (r)
		return r;
	r = engine_act_check(e);
	if (r)
		return r;
	choose_audit(e);
	if (engine_act_init(e) < 0 || make_host_group(e) < 0 || engine_groups_init(e) < 0) {
		log_err("out of memory");
		return 1;
	}
	engine_own_probe(e);
	engine_degrade_capabilities(e);
	return 0;
}

int engine_new(struct event_base *base, const struct engine_options *o, struct config *config,
	struct engine **ret)
{
	struct engine *e = calloc(1, sizeof(*e));
	int r;

	if (!e)
		return 1;
	e->base = base;
	e->options = *o;
	e->config = config;
	e->root_fd = e->thp_fd = e->cg_fd = -1;
	e->dry_run = e->dry_from_start = o->dry_run || config->dry_run;
	e->root = strdup(o->root);
	e->runtime_dir = strdup(o->runtime_dir);
	e->config_file = o->config_file ? strdup(o->config_file) : NULL;
	e->tick = evtimer_new(base, on_tick, e);
	e->audit = evtimer_new(base, on_audit, e);
	e->trim = evtimer_new(base, on_trim, e);
	e->hurry = evtimer_new(base, on_hurry, e);
	r = e->root && e->runtime_dir && e->tick && e->audit && e->trim && e->hurry ? init(e) : 1;
	if (r) {
		engine_free(e);
		return r;
	}
	*ret = e;
	return 0;
}

void engine_start(struct engine *e)
{
	e->ready = e->looks_pending = true;
	e->survey_round = 1;
	tick(e);
	/* What a crash left behind is put right even if nothing is hot. */
	if (!engine_held(e))
		engine_apply(e);
	engine_audit_groups(e, engine_now_usec());
	arm(e->audit, e->audit_usec);
	engine_schedule(e);
	notify_status(e);
}

static void on_restored(const char *path, const char *outcome, const char *from, const char *to,
	int error, void *userdata)
{
	(void)userdata;
	if (!strcmp(outcome, "restored"))
		log_info("%s: %s -> %s, restored", path, from, to);
	else if (!strcmp(outcome, "left") && error == ENOENT)
		log_warning("%s: is gone", path);
	else if (!strcmp(outcome, "left"))
		log_warning("%s: holds %s, set by somebody else: left", path, from);
	else
		log_err("%s: cannot be restored to %s: %s", path, to, strerror(error));
}

int engine_stop(struct engine *e)
{
	int failures = 0;

	e->stopped = true;
	evtimer_del(e->tick);
	evtimer_del(e->audit);
	evtimer_del(e->trim);
	evtimer_del(e->hurry);
	/* What was written before a reload made it a dry run is put back too. */
	if (baseline_restore_wanted(e->baseline) && (!e->dry_from_start || !baseline_changed(e->baseline)))
		failures = baseline_restore(e->baseline, e->thp_fd, e->cg_fd, on_restored, e);
	return failures ? 1 : 0;
}

void engine_free(struct engine *e)
{
	if (!e)
		return;
	engine_groups_free(e);
	engine_sample_free(e);
	loop_free(e->loop);
	if (e->host)
		free(e->host->path);
	free(e->host);
	engine_own_free(e);
	actuator_free(e->actuator);
	baseline_free(e->baseline);
	if (e->tick)
		event_free(e->tick);
	if (e->audit)
		event_free(e->audit);
	if (e->trim)
		event_free(e->trim);
	if (e->hurry)
		event_free(e->hurry);
	config_free(e->config);
	cleanup_close(&e->cg_fd);
	cleanup_close(&e->thp_fd);
	cleanup_close(&e->root_fd);
	free(e->due);
	free(e->root);
	free(e->runtime_dir);
	free(e->config_file);
	free(e->brief_hold);
	free(e);
}

/* ---- orders from outside ----------------------------------------------- */

struct faults {
	char *first;
	unsigned n;
};

static void on_fault(const char *file, unsigned line, const char *message, void *userdata)
{
	struct faults *f = userdata;
	char place[16] = "";

	if (line)
		snprintf(place, sizeof(place), ":%u", line);
	log_err("%s%s: %s", file, place, message);
	if (f->n++ == 0)
		snprintf(f->first, ENGINE_WHY_LEN, "%s%s: %s", file, place, message);
}

int engine_reload(struct engine *e, char why[ENGINE_WHY_LEN])
{
	struct config *config, *old = e->config;
	struct faults faults = {.first = why};
	bool again;
	int r = config_load(e->config_file, e->root, on_fault, &faults, &config);

	if (r < 0) {
		size_t n = faults.n ? strlen(why) : 0;

		log_err("the configuration was not reloaded: the old one stands");
		if (faults.n == 0)
			snprintf(why, ENGINE_WHY_LEN, "%s", strerror(-r));
		else if (faults.n > 1)
			snprintf(why + n, ENGINE_WHY_LEN - n, "; %u faults in all, they are in the log",
				faults.n);
		return r;
	}
	e->config = config;
	log_set_level(config->log_level);
	baseline_set_restore_on_exit(e->baseline, config->restore_on_exit);
	actuator_set_reassert(e->actuator, config->foreign == FOREIGN_REASSERT);
	e->dry_run = e->options.dry_run || config->dry_run;
	e->dry_from_start &= e->dry_run;
	actuator_set_dry_run(e->actuator, e->dry_run);
	again = engine_retry_files(e);
	engine_replan(e);
	engine_own_reconfigure(e);
	if (e->tree)
		tree_set_config(e->tree, config);
	engine_rearm_triggers(e);
	choose_audit(e);
	arm(e->audit, e->audit_usec);
	config_free(old);
	begin(e, engine_now_usec());
	decide(e, again && !engine_held(e));
	engine_schedule(e);
	engine_tell_changed(e);
	log_info("configuration reloaded");
	return 0;
}

int engine_hold(struct engine *e, const char *reason)
{
	int r = baseline_set_hold(e->baseline, reason && *reason ? reason : "no reason given");

	if (r == 0)
		log_info("held: %s", baseline_hold(e->baseline));
	engine_tell_changed(e);
	return r;
}

const char *engine_held(const struct engine *e)
{
	const char *lasting = baseline_hold(e->baseline);

	return lasting ? lasting : e->brief_hold;
}

static void go_on(struct engine *e)
{
	engine_undegrade(e, "restore");
	if (!engine_held(e))
		engine_own_audit(e);
	engine_tell_changed(e);
	begin(e, engine_now_usec());
	decide(e, !engine_held(e));
	engine_schedule(e);
}

int engine_release(struct engine *e)
{
	int r;

	if (!baseline_hold(e->baseline))
		return 0;
	r = baseline_set_hold(e->baseline, NULL);
	if (r == 0)
		log_info("released");
	go_on(e);
	return r;
}

int engine_hold_briefly(struct engine *e, const char *reason)
{
	char *copy = reason ? strdup(reason) : NULL;
	bool ends = e->brief_hold && !reason;

	if (reason && !copy)
		return -ENOMEM;
	free(e->brief_hold);
	e->brief_hold = copy;
	if (reason)
		log_info("held while the one who asked is there: %s", reason);
	else if (ends)
		log_info("that hold has ended");
	if (ends)
		go_on(e);
	else
		engine_tell_changed(e);
	return 0;
}

int engine_restore(struct engine *e)
{
	int failures = baseline_restore(e->baseline, e->thp_fd, e->cg_fd, on_restored, e);

	if (failures > 0)
		engine_degrade(e, "restore", "%d of the start values could not be put back, see the log: mthpctl "
			"restore tries again, mthpctl release lets mthpd go on", failures);
	else
		engine_undegrade(e, "restore");
	engine_hold(e, "restored by hand");
	for (unsigned i = 0; i < e->n_knobs; i++)
		actuator_read(e->actuator, e->knobs[i].path, e->knobs[i].stands, sizeof(e->knobs[i].stands));
	for (size_t i = 0; i < e->loop->n_groups; i++)
		engine_own_look(e, e->loop->groups[i]);
	return failures;
}

static void print_capability(const char *word, const char *found, const char *remedy, void *userdata)
{
	(void)userdata;
	log_info("  %-17s %s%s%s", word, found, *remedy ? "; " : "", remedy);
}

void engine_print_features(struct engine *e)
{
	log_info("Linux %s; what mthpd can do here:", e->caps.release);
	caps_describe(&e->caps, print_capability, NULL);
}
