/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "watch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/resource.h>

#include "cleanup.h"
#include "idmap.h"
#include "log.h"
#include "psi-poller.h"
#include "psi-trigger.h"

#define SLOTS_MAX (UINT32_C(1) << 29)
#define NO_SLOT UINT32_MAX

#define RESERVE_MIN 16
#define RESERVE_MAX 128
#define INOTIFY_BYTES (16 * 1024)
#define INOTIFY_READS 16 /* in one turn of the loop */

enum cause {
	CAUSE_NOFILE,
	CAUSE_NFILE,
	CAUSE_ACCESS,
	CAUSE_WINDOW,
	CAUSE_EPOLL,
	CAUSE_MEMORY,
	CAUSE_THREAD,
	CAUSE_WATCHES,
	CAUSE_INSTANCES,
	CAUSE_INOTIFY,
};

/* What inotify watches of a group; the low bits of a watch descriptor's value. */
enum wd_kind { WD_EVENTS, WD_THP_EVENTS, WD_CHILDREN, WD_KINDS };
#define WD_BITS 2
static const struct {
	unsigned part;
	const char *file;
	uint32_t mask;
} wd_kinds[WD_KINDS] = {
	[WD_EVENTS] = {WATCH_EVENTS, "/memory.events", IN_MODIFY},
	[WD_THP_EVENTS] = {WATCH_THP_EVENTS, "/memory.thp.events", IN_MODIFY},
	[WD_CHILDREN] = {WATCH_CHILDREN, "", IN_CREATE | IN_DELETE | IN_ONLYDIR},
};

struct group {
	uint64_t token;				/* 0 = free slot */
	const char *path;			/* borrowed */
	int trigger_fd, wd[WD_KINDS]; /* -1 = not watched */
	uint32_t generation;
	uint32_t threshold_usec, window_usec; /* of trigger_fd, as asked for */
	uint32_t next_free;
	bool gone, refused_fd, refused_inotify;
};


struct watch {
	struct event_base *base;
	int root_fd;
	struct watch_ops ops;
	void *userdata;

	struct group *groups;
	uint32_t n_slots, first_free;
	struct idmap by_token, by_wd;
	struct watch_counts counts;
	unsigned warned; /* bits of enum cause */

	/* triggers */
	int fd_limit;
	uint64_t refused_window_usec; /* the kernel said EINVAL to this one */
	struct psi_poller *poller;

	/* inotify */
	int inotify_fd;
	struct event *inotify_event, *inotify_resume;
};

static bool first_time(struct watch *w, enum cause cause)
{
	unsigned bit = 1U << cause;
	bool first = !(w->warned & bit);

	w->warned |= bit;
	return first;
}

/* A descriptor of the group's directory, -ENOENT when it is gone. */
static int open_group(const struct watch *w, const char *path)
{
	int fd;

	if (path[0] == '/' || (w->root_fd < 0 && path[0]))
		return -EINVAL;
	fd = w->root_fd < 0
		     ? open("/proc/pressure", O_PATH | O_DIRECTORY | O_CLOEXEC)
		     : openat(w->root_fd, path[0] ? path : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOTDIR ? -ENOENT : -errno;
	return fd;
}

/* ---- triggers ---- */

static struct group *group_of_token(struct watch *w, uint64_t token)
{
	uint32_t slot;

	return idmap_get(&w->by_token, token, &slot) ? &w->groups[slot] : NULL;
}

/* What the poller knows of a group: its slot below and its generation above, so
 * that an event which arrives after a removal finds nobody. */
static uint64_t key_of(const struct watch *w, const struct group *g)
{
	return (uint64_t)g->generation << 32 | (uint64_t)(g - w->groups);
}

static void release_trigger(struct watch *w, struct group *g)
{
	if (g->trigger_fd < 0)
		return;
	/* of a dead cgroup nothing is left to wait for */
	psi_poller_remove(w->poller, g->trigger_fd, !g->gone);
	g->trigger_fd = -1;
	w->counts.triggers--;
}

static void warn_trigger(struct watch *w, int err)
{
	switch (err) {
	case -EMFILE:
		if (first_time(w, CAUSE_NOFILE))
			log_warning("No descriptors left for PSI triggers (RLIMIT_NOFILE, "
				    "LimitNOFILE=): the other groups are polled");
		break;
	case -ENFILE:
		if (first_time(w, CAUSE_NFILE))
			log_warning("The system's limit of open files (sysctl fs.file-max) is "
				    "reached: groups without a PSI trigger are polled");
		break;
	case -EACCES:
	case -EPERM:
		if (first_time(w, CAUSE_ACCESS))
			log_warning("memory.pressure may not be opened for writing (%s; root, "
				    "or CAP_DAC_OVERRIDE for groups of users): such groups are "
				    "polled",
				strerror(-err));
		break;
	case -EINVAL:
		if (first_time(w, CAUSE_WINDOW))
			log_warning("The kernel refuses PSI triggers, with a window of 2 s too: "
				    "groups are polled");
		break;
	case -ENOSPC:
		if (first_time(w, CAUSE_EPOLL))
			log_warning("No room for PSI triggers in epoll (sysctl "
				    "fs.epoll.max_user_watches): the other groups are polled");
		break;
	case -ENOMEM:
		if (first_time(w, CAUSE_MEMORY))
			log_warning("The kernel has no memory for a PSI trigger: such groups are "
				    "polled");
		break;
	case -EAGAIN:
		if (first_time(w, CAUSE_THREAD))
			log_warning("The thread for PSI triggers cannot be started (TasksMax=): "
				    "groups are polled");
		break;
	default: /* no PSI, here or at all: the engine's to say */
		break;
	}
}

static int open_once(
	const struct watch *w, int dirfd, uint64_t threshold_usec, uint64_t window_usec)
{
	const char *file = w->root_fd >= 0 ? "memory.pressure" : "/proc/pressure/memory";
	int fd = psi_trigger_open(dirfd, file, threshold_usec, window_usec, w->fd_limit);

	/* One trigger per open file: a fresh one cannot be busy twice. */
	if (fd == -EBUSY)
		fd = psi_trigger_open(dirfd, file, threshold_usec, window_usec, w->fd_limit);
	return fd;
}

/* As asked for, or with the window that every kernel grants. */
static int open_trigger(struct watch *w, int dirfd, uint64_t threshold_usec, uint64_t window_usec)
{
	const uint64_t safe = PSI_TRIGGER_SAFE_WINDOW_USEC;
	uint64_t safe_threshold = threshold_usec * safe / window_usec;
	int fd;

	if (window_usec != w->refused_window_usec) {
		fd = open_once(w, dirfd, threshold_usec, window_usec);
		if (fd != -EINVAL || window_usec == safe)
			return fd;
	}
	fd = open_once(w, dirfd, safe_threshold ? safe_threshold : 1, safe);
	if (fd >= 0 && window_usec != w->refused_window_usec) {
		w->refused_window_usec = window_usec;
		log_warning("The kernel does not grant PSI windows of %llu ms (a multiple of 2 s, "
			    "or CAP_SYS_RESOURCE): 2 s is used",
			(unsigned long long)window_usec / 1000);
	}
	return fd;
}

static void set_refused_fd(struct watch *w, struct group *g, bool yes)
{
	w->counts.refused_fd += (unsigned)yes - (unsigned)g->refused_fd;
	g->refused_fd = yes;
}

/* Gives @g a trigger, in the place of the one that it may have. */
static int arm(
	struct watch *w, struct group *g, int dirfd, uint64_t threshold_usec, uint64_t window_usec)
{
	_cleanup_close_ int fd = -1;
	int r;

	if (threshold_usec == 0 || threshold_usec > window_usec || window_usec > UINT32_MAX)
		return -EINVAL;
	fd = open_trigger(w, dirfd, threshold_usec, window_usec);
	r = fd < 0 ? fd : psi_poller_add(w->poller, fd, key_of(w, g));
	if (r < 0) {
		warn_trigger(w, r);
		if (g->trigger_fd < 0)
			set_refused_fd(w, g, r == -EMFILE || r == -ENFILE || r == -ENOSPC);
		return r;
	}
	release_trigger(w, g);
	g->trigger_fd = take_fd(&fd);
	g->threshold_usec = (uint32_t)threshold_usec;
	g->window_usec = (uint32_t)window_usec;
	w->counts.triggers++;
	set_refused_fd(w, g, false);
	return 0;
}

static void report_gone(struct watch *w, struct group *g)
{
	if (g->gone)
		return;
	g->gone = true;
	release_trigger(w, g);
	w->ops.gone(g->token, w->userdata);
}

/* The kernel has taken the trigger away: with its cgroup, or because the group's
 * PSI was switched off (kernel/cgroup/cgroup.c: cgroup_pressure_write). */
static void trigger_failed(struct watch *w, struct group *g)
{
	_cleanup_close_ int dirfd = open_group(w, g->path);

	if (dirfd == -ENOENT || dirfd == -ENODEV) {
		report_gone(w, g);
		return;
	}
	release_trigger(w, g);
	if (w->ops.pressure_lost)
		w->ops.pressure_lost(g->token, w->userdata);
}

static void on_trigger(uint64_t key, bool gone, void *userdata)
{
	struct watch *w = userdata;
	uint64_t slot = key & UINT32_MAX;
	struct group *g = slot < w->n_slots ? &w->groups[slot] : NULL;

	if (!g || g->token == 0 || g->generation != key >> 32 || g->gone)
		return;
	if (gone)
		trigger_failed(w, g);
	else if (g->trigger_fd >= 0)
		w->ops.pressure(g->token, w->userdata);
}

/* ---- inotify ---- */

static void forget_wd(struct watch *w, struct group *g, enum wd_kind kind)
{
	idmap_remove(&w->by_wd, (uint64_t)g->wd[kind]);
	g->wd[kind] = -1;
	w->counts.inotify_watches--;
}

/* Returns true for a change of memory.events or memory.thp.events. */
static bool handle_inotify(struct watch *w, const struct inotify_event *e)
{
	enum wd_kind kind;
	struct group *g;
	uint32_t value;

	if (e->mask & IN_Q_OVERFLOW) {
		w->ops.overflow(w->userdata);
		return false;
	}
	if (e->wd <= 0 || !idmap_get(&w->by_wd, (uint64_t)e->wd, &value))
		return false; /* of a watch that was removed meanwhile */
	g = &w->groups[value >> WD_BITS];
	kind = (enum wd_kind)(value & ((1U << WD_BITS) - 1));
	if (e->mask & IN_IGNORED)
		forget_wd(w, g, kind);
	if (kind != WD_CHILDREN) {
		(kind == WD_EVENTS ? w->ops.events : w->ops.thp_events)(g->token, w->userdata);
		return true;
	}
	if (e->mask & IN_IGNORED)
		report_gone(w, g);
	else if ((e->mask & IN_ISDIR) && e->len > 0)
		w->ops.child(g->token, e->name, (e->mask & IN_CREATE) != 0, w->userdata);
	return false;
}

static void on_inotify(evutil_socket_t fd, short what, void *userdata)
{
	static const struct timeval pause = {0, WATCH_EVENTS_PAUSE_MSEC * 1000};
	_Alignas(struct inotify_event) char buf[INOTIFY_BYTES];
	struct watch *w = userdata;
	bool busy = false;

	(void)what;
	for (unsigned i = 0; i < INOTIFY_READS; i++) {
		ssize_t n = read(fd, buf, sizeof(buf));

		if (n <= 0)
			break;
		for (ssize_t at = 0; at < n;) {
			const struct inotify_event *e = (const struct inotify_event *)(buf + at);

			at += (ssize_t)(sizeof(*e) + e->len);
			busy |= handle_inotify(w, e);
		}
	}
	if (busy) {
		event_del(w->inotify_event);
		event_add(w->inotify_resume, &pause);
	}
}

static void on_inotify_resume(evutil_socket_t fd, short what, void *userdata)
{
	struct watch *w = userdata;

	(void)fd;
	(void)what;
	event_add(w->inotify_event, NULL);
}

static int start_inotify(struct watch *w)
{
	if (w->inotify_fd >= 0)
		return 0;
	w->inotify_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (w->inotify_fd < 0)
		return -errno;
	w->inotify_event = event_new(w->base, w->inotify_fd, EV_READ | EV_PERSIST, on_inotify, w);
	w->inotify_resume = evtimer_new(w->base, on_inotify_resume, w);
	if (!w->inotify_event || !w->inotify_resume || event_add(w->inotify_event, NULL) < 0) {
		close(w->inotify_fd);
		w->inotify_fd = -1;
		return -ENOMEM;
	}
	return 0;
}

static void warn_inotify(struct watch *w, int err)
{
	if (err == -ENOSPC && first_time(w, CAUSE_WATCHES))
		log_warning("No inotify watches left (sysctl fs.inotify.max_user_watches): the "
			    "other groups are polled");
	else if (err == -EMFILE && first_time(w, CAUSE_INSTANCES))
		log_warning("No inotify instance left (sysctl fs.inotify.max_user_instances, or "
			    "RLIMIT_NOFILE): groups are polled");
	else if (err != -ENOSPC && err != -EMFILE && first_time(w, CAUSE_INOTIFY))
		log_warning("A group cannot be watched by inotify (%s): such groups are polled",
			strerror(-err));
}

static int add_inotify(struct watch *w, struct group *g, int dirfd, enum wd_kind kind)
{
	char path[64];
	uint32_t slot = (uint32_t)(g - w->groups);
	int wd, r = start_inotify(w);

	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "/proc/self/fd/%d%s", dirfd, wd_kinds[kind].file);
	/* IN_MASK_CREATE: one watch per inode, and a second token must not take
	 * over the first one's. */
	wd = inotify_add_watch(w->inotify_fd, path, wd_kinds[kind].mask | IN_MASK_CREATE);
	if (wd < 0)
		return -errno;
	r = idmap_put(&w->by_wd, (uint64_t)wd, slot << WD_BITS | (uint32_t)kind);
	if (r < 0) {
		inotify_rm_watch(w->inotify_fd, wd);
		return r;
	}
	g->wd[kind] = wd;
	w->counts.inotify_watches++;
	return 0;
}

static void set_refused_inotify(struct watch *w, struct group *g, bool yes)
{
	w->counts.refused_inotify += (unsigned)yes - (unsigned)g->refused_inotify;
	g->refused_inotify = yes;
}

/* Tries the parts of @parts that inotify serves. */
static void add_inotify_parts(struct watch *w, struct group *g, int dirfd, unsigned parts)
{
	bool refused = false;

	for (enum wd_kind kind = 0; kind < WD_KINDS; kind++) {
		int r;

		if (!(parts & wd_kinds[kind].part) || g->wd[kind] >= 0)
			continue;
		r = add_inotify(w, g, dirfd, kind);
		/* ENOENT: the root and groups without the controller have no such file */
		if (r == 0 || r == -ENOENT)
			continue;
		warn_inotify(w, r);
		refused = true;
	}
	set_refused_inotify(w, g, refused);
}

/* ---- groups ---- */

static int grow_groups(struct watch *w)
{
	uint32_t n = w->n_slots ? w->n_slots * 2 : 64;
	struct group *bigger;

	if (n > SLOTS_MAX)
		return -ENOMEM;
	bigger = realloc(w->groups, n * sizeof(*bigger));
	if (!bigger)
		return -ENOMEM;
	memset(bigger + w->n_slots, 0, (n - w->n_slots) * sizeof(*bigger));
	for (uint32_t i = n; i-- > w->n_slots;) {
		bigger[i].next_free = w->first_free;
		w->first_free = i;
	}
	w->groups = bigger;
	w->n_slots = n;
	return 0;
}

static int group_new(struct watch *w, uint64_t token, const char *path, struct group **ret)
{
	struct group *g;
	int r;

	r = w->first_free == NO_SLOT ? grow_groups(w) : 0;
	if (r < 0)
		return r;
	r = idmap_put(&w->by_token, token, w->first_free);
	if (r < 0)
		return r;
	g = &w->groups[w->first_free];
	w->first_free = g->next_free;
	*g = (struct group){.token = token,
		.path = path,
		.generation = (g->generation + 1) & INT32_MAX,
		.trigger_fd = -1,
		.wd = {-1, -1, -1}};
	w->counts.groups++;
	*ret = g;
	return 0;
}

static void group_free(struct watch *w, struct group *g)
{
	release_trigger(w, g);
	for (enum wd_kind kind = 0; kind < WD_KINDS; kind++) {
		if (g->wd[kind] < 0)
			continue;
		(void)inotify_rm_watch(w->inotify_fd, g->wd[kind]);
		forget_wd(w, g, kind);
	}
	set_refused_fd(w, g, false);
	set_refused_inotify(w, g, false);
	idmap_remove(&w->by_token, g->token);
	g->token = 0;
	g->next_free = w->first_free;
	w->first_free = (uint32_t)(g - w->groups);
	w->counts.groups--;
}

static unsigned watched_parts(const struct group *g)
{
	unsigned parts = g->trigger_fd >= 0 ? WATCH_PRESSURE : 0U;

	for (enum wd_kind kind = 0; kind < WD_KINDS; kind++)
		parts |= g->wd[kind] >= 0 ? wd_kinds[kind].part : 0U;
	return parts;
}

int watch_add_group(struct watch *w, uint64_t token, const char *path, unsigned parts,
	uint64_t threshold_usec, uint64_t window_usec, int *ret_psi_errno)
{
	_cleanup_close_ int dirfd = -1;
	struct group *g;
	int r = 0;

	if (token == 0)
		return -EINVAL;
	dirfd = open_group(w, path);
	if (dirfd < 0)
		return dirfd;
	g = group_of_token(w, token);
	if (!g)
		r = group_new(w, token, path, &g);
	if (r < 0)
		return r;
	if (w->root_fd >= 0)
		add_inotify_parts(w, g, dirfd, parts);
	if ((parts & WATCH_PRESSURE) && g->trigger_fd < 0)
		r = arm(w, g, dirfd, threshold_usec, window_usec);
	parts = watched_parts(g);
	if (r == -ENODEV || parts == 0)
		group_free(w, g);
	if (r == -ENODEV)
		return r;
	if (ret_psi_errno)
		*ret_psi_errno = -r;
	return (int)parts;
}

int watch_rearm(struct watch *w, uint64_t token, const char *path, uint64_t threshold_usec,
	uint64_t window_usec)
{
	struct group *g = group_of_token(w, token);
	_cleanup_close_ int dirfd = -1;

	if (!g || g->gone)
		return -ENOENT;
	if (g->trigger_fd >= 0 && g->threshold_usec == threshold_usec &&
		g->window_usec == window_usec)
		return 0;
	dirfd = open_group(w, path);
	return dirfd < 0 ? dirfd : arm(w, g, dirfd, threshold_usec, window_usec);
}

void watch_remove_group(struct watch *w, uint64_t token)
{
	struct group *g = group_of_token(w, token);

	if (g)
		group_free(w, g);
}

void watch_counts(const struct watch *w, struct watch_counts *ret)
{
	*ret = w->counts;
}

/* ---- beginning and end ---- */

/* Descriptors from here up are for everything else: clients, samples, the bus. */
static int descriptor_limit(void)
{
	struct rlimit l;
	rlim_t reserve;

	if (getrlimit(RLIMIT_NOFILE, &l) < 0)
		return RESERVE_MIN;
	if (l.rlim_cur < l.rlim_max) {
		l.rlim_cur = l.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &l);
		(void)getrlimit(RLIMIT_NOFILE, &l);
	}
	reserve = l.rlim_cur / 4;
	reserve = reserve < RESERVE_MIN	  ? RESERVE_MIN
		  : reserve > RESERVE_MAX ? RESERVE_MAX
					  : reserve;
	if (l.rlim_cur <= reserve)
		return 0;
	return l.rlim_cur > INT32_MAX ? INT32_MAX : (int)(l.rlim_cur - reserve);
}

int watch_new(struct event_base *base, int cg_root_fd, const struct watch_ops *ops, void *userdata,
	struct watch **ret)
{
	struct watch *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	w->base = base;
	w->root_fd = cg_root_fd;
	w->ops = *ops;
	w->userdata = userdata;
	w->first_free = NO_SLOT;
	w->inotify_fd = -1;
	w->fd_limit = descriptor_limit();
	r = psi_poller_new(base, on_trigger, w, &w->poller);
	if (r < 0) {
		watch_free(w);
		return r;
	}
	*ret = w;
	return 0;
}

/* All triggers at once, see psi_poller_free(). */
static void close_triggers(struct watch *w)
{
	int *fds = w->counts.triggers ? malloc(w->counts.triggers * sizeof(*fds)) : NULL;
	size_t n = 0;

	for (uint32_t i = 0; i < w->n_slots; i++) {
		int fd = w->groups[i].token ? w->groups[i].trigger_fd : -1;

		if (fd >= 0 && fds)
			fds[n++] = fd;
		else if (fd >= 0)
			close(fd);
	}
	psi_poller_free(w->poller, fds, n);
	free(fds);
}

void watch_free(struct watch *w)
{
	if (!w)
		return;
	close_triggers(w);
	if (w->inotify_event)
		event_free(w->inotify_event);
	if (w->inotify_resume)
		event_free(w->inotify_resume);
	cleanup_close(&w->inotify_fd);
	idmap_done(&w->by_token);
	idmap_done(&w->by_wd);
	free(w->groups);
	free(w);
}
