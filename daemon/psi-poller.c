/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "psi-poller.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>

#include "cleanup.h"
#include "psi-trigger.h"

#define GONE_BIT PSI_POLLER_KEY_RESERVED
#define KEY_CLOSING UINT64_MAX
#define THREAD_STACK_BYTES (64 * 1024)
#define BATCH 64 /* events taken from the kernel or the pipe at once */

struct psi_poller {
	psi_poller_fn fn;
	void *userdata;
	bool thread_runs;
	pthread_t thread;
	atomic_bool stopping;
	int epoll_fd;
	int fired_r, fired_w;	  /* keys, thread to loop */
	int closing_r, closing_w; /* descriptors to close, loop to thread */
	struct event *fired_event;
};

/* ---- the thread ---- */

/* One at a time, so that triggers that fire do not wait for many. */
static bool close_next(struct psi_poller *p)
{
	int fd;

	if (atomic_load(&p->stopping) || read(p->closing_r, &fd, sizeof(fd)) != sizeof(fd))
		return false;
	close(fd);
	return true;
}

static void *poll_triggers(void *userdata)
{
	struct psi_poller *p = userdata;
	struct epoll_event ev[BATCH];

	for (;;) {
		int n = epoll_wait(p->epoll_fd, ev, BATCH, -1);

		if (n < 0 && errno != EINTR)
			return NULL;
		for (int i = 0; i < n; i++) {
			uint64_t key = ev[i].data.u64;

			if (key == KEY_CLOSING) {
				if (!close_next(p))
					return NULL;
				continue;
			}
			if (ev[i].events & (EPOLLERR | EPOLLHUP))
				key |= GONE_BIT;
			if (write(p->fired_w, &key, sizeof(key)) != sizeof(key))
				return NULL;
		}
	}
}

static int start_thread(struct psi_poller *p)
{
	pthread_attr_t attr;
	sigset_t all, old;
	int r;

	if (p->thread_runs)
		return 0;
	r = pthread_attr_init(&attr);
	if (r != 0)
		return -r;
	(void)pthread_attr_setstacksize(&attr, THREAD_STACK_BYTES);
	/* Signals are the loop's; and a write to a pipe that the loop has closed
	 * must end the thread, not the process. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&p->thread, &attr, poll_triggers, p);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	if (r != 0)
		return -r;
	(void)pthread_setname_np(p->thread, "mthpd-psi");
	p->thread_runs = true;
	return 0;
}

/* ---- the loop ---- */

static void on_fired(evutil_socket_t fd, short what, void *userdata)
{
	struct psi_poller *p = userdata;
	uint64_t keys[BATCH];
	ssize_t n = read(fd, keys, sizeof(keys));

	(void)what;
	for (ssize_t i = 0; i < n / (ssize_t)sizeof(keys[0]); i++)
		p->fn(keys[i] & ~GONE_BIT, (keys[i] & GONE_BIT) != 0, p->userdata);
}

static int open_pipes(struct psi_poller *p)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = KEY_CLOSING};
	int fired[2], closing[2];

	p->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (p->epoll_fd < 0 || pipe2(fired, O_CLOEXEC) < 0)
		return -errno;
	p->fired_r = fired[0];
	p->fired_w = fired[1];
	if (pipe2(closing, O_CLOEXEC) < 0)
		return -errno;
	p->closing_r = closing[0];
	p->closing_w = closing[1];
	/* Only the thread may block, when it writes: while the loop does not listen
	 * there is nothing better to do. */
	if (fcntl(p->fired_r, F_SETFL, O_NONBLOCK) < 0 ||
		fcntl(p->closing_w, F_SETFL, O_NONBLOCK) < 0 ||
		fcntl(p->closing_r, F_SETFL, O_NONBLOCK) < 0 ||
		epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, p->closing_r, &ev) < 0)
		return -errno;
	return 0;
}

int psi_poller_new(
	struct event_base *base, psi_poller_fn fn, void *userdata, struct psi_poller **ret)
{
	struct psi_poller *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	p->fn = fn;
	p->userdata = userdata;
	p->epoll_fd = p->fired_r = p->fired_w = p->closing_r = p->closing_w = -1;
	r = open_pipes(p);
	if (r == 0) {
		p->fired_event = event_new(base, p->fired_r, EV_READ | EV_PERSIST, on_fired, p);
		if (!p->fired_event || event_add(p->fired_event, NULL) < 0)
			r = -ENOMEM;
	}
	if (r < 0) {
		psi_poller_free(p, NULL, 0);
		return r;
	}
	*ret = p;
	return 0;
}

/* The triggers of the caller and those that still lie in the pipe, closed
 * together: one after the other 10,000 would take minutes. */
static void close_rest(const struct psi_poller *p, const int *fds, size_t n)
{
	int *all = NULL, fd;
	size_t n_all = 0;

	while (p->closing_r >= 0 && read(p->closing_r, &fd, sizeof(fd)) == sizeof(fd)) {
		int *more = realloc(all, (n_all + 1) * sizeof(*more));

		if (!more) {
			close(fd);
			continue;
		}
		all = more;
		all[n_all++] = fd;
	}
	psi_trigger_close_all(all, n_all);
	psi_trigger_close_all(fds, n);
	free(all);
}

void psi_poller_free(struct psi_poller *p, const int *fds, size_t n)
{
	if (!p)
		return;
	/* Ends the thread where it waits: for the loop to read, or for work. */
	atomic_store(&p->stopping, true);
	if (p->fired_event)
		event_free(p->fired_event);
	cleanup_close(&p->fired_r);
	cleanup_close(&p->closing_w);
	if (p->thread_runs)
		pthread_join(p->thread, NULL);
	close_rest(p, fds, n);
	cleanup_close(&p->fired_w);
	cleanup_close(&p->closing_r);
	cleanup_close(&p->epoll_fd);
	free(p);
}

int psi_poller_add(struct psi_poller *p, int fd, uint64_t key)
{
	/* Edge-triggered: the file of a removed cgroup reports its error for ever,
	 * and must be seen once. */
	struct epoll_event ev = {.events = EPOLLPRI | EPOLLET, .data.u64 = key};
	int r = start_thread(p);

	if (r < 0)
		return r;
	return epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

void psi_poller_remove(struct psi_poller *p, int fd, bool live)
{
	(void)epoll_ctl(p->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
	if (!live || !p->thread_runs || write(p->closing_w, &fd, sizeof(fd)) != sizeof(fd))
		close(fd);
}
