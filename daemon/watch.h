/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What wakes the daemon: PSI triggers, memory.events changes, and cgroups
 * that come and go. Triggers are polled by one small thread with its own
 * epoll, because libevent has no EPOLLPRI and a trigger's event is consumed by
 * the poll that sees it; the thread hands tokens to the loop over a pipe and
 * knows nothing else. memory.events and directories are watched by a single
 * inotify instance. Called by the engine; never reads samples, never decides.
 *
 * Limits: one thread, one epoll, one inotify instance; descriptors stay below
 * RLIMIT_NOFILE minus a reserve. Whatever cannot be watched (EMFILE, ENOSPC,
 * EPERM, no PSI) is reported once, with the name of the limit and sysctl, and is
 * listed by watch_unwatched() so that the engine polls it.
 */
#ifndef MTHPD_WATCH_H
#define MTHPD_WATCH_H

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

struct watch;

/* All callbacks run on the loop, never on the thread. @token names a group
 * as given to watch_add_group(). */
struct watch_ops {
	void (*pressure)(uint64_t token, void *userdata);  /* a PSI trigger fired */
	void (*events)(uint64_t token, void *userdata);    /* memory.events changed */
	void (*gone)(uint64_t token, void *userdata);      /* EPOLLERR on the trigger: cgroup is dead, its trigger already closed */
	void (*child)(uint64_t token, const char *name, bool created, void *userdata);
	void (*overflow)(void *userdata);                  /* inotify queue overflowed: rescan the tree */
};

/* @cg_root_fd: descriptor of the cgroup2 root (borrowed). */
int watch_new(struct event_base *base, int cg_root_fd, const struct watch_ops *ops, void *userdata,
	struct watch **ret);
void watch_free(struct watch *w);

enum watch_parts { WATCH_PRESSURE = 1, WATCH_EVENTS = 2, WATCH_CHILDREN = 4 };

/* Starts watching @parts of the group at @path ("" = root) under @token
 * (unique, non-zero). Trigger: "some @threshold_usec @window_usec", written with its NUL in
 * one write; the opener must not hold CAP_SYS_RESOURCE unless the window is
 * not a multiple of 2 s (controller.md, 1.7). EINVAL on the window: once more with
 * 2 s, then polling. Returns the parts that are really watched, or
 * -ENOENT/-ENODEV when the cgroup is gone. *ret_psi_errno (may be NULL): 0 or why the trigger
 * was refused (EOPNOTSUPP psi=0, ENOENT no such file, EACCES/EPERM, EINVAL, EMFILE). */
int watch_add_group(struct watch *w, uint64_t token, const char *path, unsigned parts,
	uint64_t threshold_usec, uint64_t window_usec, int *ret_psi_errno);
/* Re-arms the trigger with another threshold: opens and writes the new one
 * before the old is closed, so that no moment is unwatched. */
int watch_rearm(struct watch *w, uint64_t token, const char *path, uint64_t threshold_usec, uint64_t window_usec);
void watch_remove_group(struct watch *w, uint64_t token);

struct watch_counts {
	unsigned triggers, inotify_watches, groups, refused_fd, refused_inotify;
};
void watch_counts(const struct watch *w, struct watch_counts *ret);

#endif
