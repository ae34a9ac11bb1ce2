/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The thread that polls PSI triggers for the loop. It has its own epoll over
 * their descriptors and hands the keys of those that fired over a pipe, and it
 * closes what the loop no longer wants, because destroying a live trigger
 * waits for an RCU grace period (10 ms and more). It shares nothing else with
 * the loop: no locks. Called by watch.c alone; every function runs on the loop.
 */
#ifndef MTHPD_PSI_POLLER_H
#define MTHPD_PSI_POLLER_H

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Keys are the caller's, without this bit. */
#define PSI_POLLER_KEY_RESERVED (UINT64_C(1) << 63)

struct psi_poller;

/* @gone: EPOLLERR or EPOLLHUP, the cgroup is dead; not an event of pressure,
 * whatever else was set. May come once more after psi_poller_remove(): the
 * caller tells by the key. Must not free the poller. */
typedef void (*psi_poller_fn)(uint64_t key, bool gone, void *userdata);

int psi_poller_new(
	struct event_base *base, psi_poller_fn fn, void *userdata, struct psi_poller **ret);
/* Ends the thread, then closes @fds, the triggers that are still armed, and
 * what the thread had not come to. */
void psi_poller_free(struct psi_poller *p, const int *fds, size_t n);

/* The thread starts with the first descriptor. 0 or -errno (EAGAIN: no thread,
 * ENOSPC: fs.epoll.max_user_watches). */
int psi_poller_add(struct psi_poller *p, int fd, uint64_t key);
/* No longer polled; and closed, by the thread if it is @live. */
void psi_poller_remove(struct psi_poller *p, int fd, bool live);

#endif
