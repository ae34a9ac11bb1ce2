/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What wakes the daemon: PSI triggers, memory.events changes, and cgroups
 * that come and go. Triggers are polled by one small thread with its own
 * epoll, because libevent has no EPOLLPRI and a trigger's event is consumed by
 * the poll that sees it; the thread hands tokens to the loop over a pipe and
 * knows nothing else. memory.events and directories are watched by a single
 * inotify instance. Called by the engine; never reads samples, never decides.
 *
 * Limits: one thread (a few more for a moment in watch_free()), one epoll, one
 * inotify instance; triggers stay below RLIMIT_NOFILE minus a reserve of a
 * quarter of it (at least 16, at most 128 descriptors). Whatever cannot be
 * watched (EMFILE, ENOSPC, EPERM, no PSI) is logged once per cause, with the
 * name of the limit or sysctl, is counted, and is missing in the answer of
 * watch_add_group(), so that the engine polls it.
 */
#ifndef MTHPD_WATCH_H
#define MTHPD_WATCH_H

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

/* After a batch with memory.events in it the next is taken this much later:
 * groups at their limit change theirs up to 100 times a second each. */
#define WATCH_EVENTS_PAUSE_MSEC 500

struct watch;

/* All callbacks run on the loop, never on the thread. @token names a group
 * as given to watch_add_group(). They may add and remove groups, and must not
 * call watch_free(). */
struct watch_ops {
	void (*pressure)(uint64_t token, void *userdata);  /* a PSI trigger fired */
	void (*events)(uint64_t token, void *userdata);	    /* memory.events changed */
	void (*thp_events)(uint64_t token, void *userdata); /* memory.thp.events changed */
	/* The cgroup is dead: its trigger reports an error and there is no such
	 * directory any more, or the directory's inode has gone. Once per group; its
	 * trigger is closed already, the rest goes with watch_remove_group(). No
	 * pressure() comes with it or after it. */
	void (*gone)(uint64_t token, void *userdata);
	/* The trigger reports an error and the directory is there: somebody has
	 * switched PSI off for this group (cgroup.pressure=0). The trigger is closed;
	 * watch_add_group() may try again at any time. May be NULL. */
	void (*pressure_lost)(uint64_t token, void *userdata);
	void (*child)(uint64_t token, const char *name, bool created, void *userdata);
	void (*overflow)(void *userdata);                  /* inotify queue overflowed: rescan the tree */
};

/* @cg_root_fd: descriptor of the cgroup2 root (borrowed), or -1 on a host
 * without cgroup2: only "" exists then, and its trigger is that of
 * /proc/pressure/memory. Raises the soft RLIMIT_NOFILE to the hard one. */
int watch_new(struct event_base *base, int cg_root_fd, const struct watch_ops *ops, void *userdata,
	struct watch **ret);
void watch_free(struct watch *w);

enum watch_parts { WATCH_PRESSURE = 1, WATCH_EVENTS = 2, WATCH_CHILDREN = 4, WATCH_THP_EVENTS = 8 };

/* Starts watching @parts of the group at @path ("" = root, no leading slash) under @token
 * (unique, non-zero). @path is borrowed until watch_remove_group(). For a token that
 * is watched already only the missing
 * parts are tried, so a part that was refused may be asked for again. Children
 * that exist already are not reported: list the directory after this call.
 *
 * Trigger: "some @threshold_usec @window_usec", opened as psi-trigger.h says.
 * EINVAL on the window: once more with 2 s and the same share, then polling.
 * Returns the parts that are watched now, -ENOENT/-ENODEV when the cgroup is
 * gone, -EINVAL for a bad token or path, -ENOMEM, -EMFILE. With 0 or an error
 * the token is not known afterwards. *ret_psi_errno (may be NULL): 0 or why the trigger was refused
 * (EOPNOTSUPP psi=0, ENOENT no such file, EACCES/EPERM, EINVAL, EMFILE). */
int watch_add_group(struct watch *w, uint64_t token, const char *path, unsigned parts,
	uint64_t threshold_usec, uint64_t window_usec, int *ret_psi_errno);
/* Re-arms the trigger with another threshold: opens and writes the new one
 * before the old is closed, so that no moment is unwatched. Does nothing when
 * the trigger stands like this already; arms a group that had none. Returns 0
 * or the negative reason of a refusal, and the old trigger stands then;
 * -ENOENT for an unknown token or a group that is gone. */
int watch_rearm(struct watch *w, uint64_t token, const char *path, uint64_t threshold_usec, uint64_t window_usec);
/* Must be called for every group that is forgotten, dead ones too: not every
 * kernel drops the inotify watches of a removed cgroup by itself. */
void watch_remove_group(struct watch *w, uint64_t token);

struct watch_counts {
	unsigned triggers, inotify_watches, groups;
	unsigned refused_fd;      /* groups without a trigger for want of a descriptor */
	unsigned refused_inotify; /* groups that inotify has refused a watch */
};
void watch_counts(const struct watch *w, struct watch_counts *ret);

#endif
