/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl-top.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "cleanup.h"
#include "ctl-text.h"

/* The other screen, no cursor; and back. */
#define ENTER "\033[?1049h\033[?25l\033[2J"
#define LEAVE "\033[0m\033[?25h\033[?1049l"

struct top {
	const struct ctl *ctl;
	struct top_view view;
	json_t *status;
	char notice[160];
	size_t rows, groups;
	bool keys; /* there is a keyboard */
	struct termios before;
	int signals;
	sigset_t mask_before;
	bool done;
	int code;
};

static int64_t now_msec(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- asking ---- */

/* A status (new reference), or NULL with *ret_err of the call (0 = it answered
 * something else). */
static json_t *ask(const struct ctl *ctl, int timeout_msec, int *ret_err)
{
	struct ctl_reply r;
	json_t *status = NULL;
	int err = ctl_call(ctl->socket, "org.mthpd1.GetStatus", NULL, timeout_msec, &r);

	*ret_err = err;
	if (err < 0)
		return NULL;
	if (!r.error && json_is_object(json_object_get(r.parameters, "status")))
		status = json_incref(json_object_get(r.parameters, "status"));
	ctl_reply_done(&r);
	return status;
}

/* The old picture stays when there is no new one, and the screen says so. */
static void refresh(struct top *t)
{
	int err;
	json_t *status = ask(t->ctl, CTL_TOP_TIMEOUT_MSEC, &err);

	if (status) {
		json_decref(t->status);
		t->status = status;
		t->view.notice = NULL;
		return;
	}
	snprintf(t->notice, sizeof(t->notice), "No answer from mthpd, what follows is old: %s",
		err < 0 ? strerror(-err) : "it does not know how");
	t->view.notice = t->notice;
}

/* ---- the terminal ---- */

static void measure(struct top *t)
{
	struct winsize w;

	if (ioctl(fileno(t->ctl->out), TIOCGWINSZ, &w) < 0 || w.ws_col == 0 || w.ws_row == 0) {
		w.ws_col = CTL_WIDTH;
		w.ws_row = 24;
	}
	t->view.width = w.ws_col;
	t->view.height = w.ws_row;
}

static void enter_screen(struct top *t)
{
	struct termios raw = t->before;

	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	if (t->keys)
		tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	fputs(ENTER, t->ctl->out);
	measure(t);
}

static void leave_screen(struct top *t)
{
	fputs(LEAVE, t->ctl->out);
	fflush(t->ctl->out);
	if (t->keys)
		tcsetattr(STDIN_FILENO, TCSANOW, &t->before);
}

static void draw(struct top *t)
{
	t->rows = top_draw(t->ctl->out, t->status, &t->view, &t->groups);
	if (fflush(t->ctl->out) != 0 || ferror(t->ctl->out)) {
		t->done = true;
		t->code = CTL_NO;
	}
}

/* ---- keys and signals ---- */

static void scroll(struct top *t, long by)
{
	long first = (long)t->view.first + by;

	/* top_draw() keeps it from the end. */
	t->view.first = first > 0 ? (size_t)first : 0;
}

static void obey(struct top *t, const char *key, size_t len)
{
	long page = t->rows > 1 ? (long)t->rows - 1 : 1;

	if (len == 3 && key[2] == 'A')
		scroll(t, -1);
	else if (len == 3 && key[2] == 'B')
		scroll(t, 1);
	else if (len == 4 && key[2] == '5')
		scroll(t, -page);
	else if (len == 4 && key[2] == '6')
		scroll(t, page);
	if (len != 1)
		return;
	switch (*key) {
	case 'q':
	case 'Q':
		t->done = true;
		break;
	case 's':
		t->view.sort = (t->view.sort + 1) % TOP_SORTS;
		t->view.first = 0;
		break;
	case 'j':
		scroll(t, 1);
		break;
	case 'k':
		scroll(t, -1);
		break;
	case 'g':
		t->view.first = 0;
		break;
	case 'G':
		t->view.first = t->groups;
		break;
	}
}

/* Length of the key at the beginning of @text: a letter, or ESC [ ... letter. */
static size_t key_length(const char *text, size_t len)
{
	size_t n = 2;

	if (len < 3 || text[0] != '\033' || (text[1] != '[' && text[1] != 'O'))
		return 1;
	while (n < len && (text[n] < 0x40 || text[n] > 0x7e))
		n++;
	return n < len ? n + 1 : len;
}

static void take_keys(struct top *t)
{
	char text[64];
	ssize_t len = read(STDIN_FILENO, text, sizeof(text));
	size_t at = 0;

	if (len == 0 || (len < 0 && errno != EINTR && errno != EAGAIN))
		t->done = true; /* the terminal has gone */
	while (len > 0 && at < (size_t)len) {
		size_t n = key_length(text + at, (size_t)len - at);

		obey(t, text + at, n);
		at += n;
	}
}

static void take_signal(struct top *t)
{
	struct signalfd_siginfo s;

	if (read(t->signals, &s, sizeof(s)) != sizeof(s))
		return;
	switch (s.ssi_signo) {
	case SIGWINCH:
		measure(t);
		break;
	case SIGTSTP:
		leave_screen(t);
		raise(SIGSTOP);
		enter_screen(t);
		break;
	case SIGCONT:
		break;
	default:
		t->done = true;
	}
}

static int take_signals(struct top *t)
{
	static const int signals[] = {SIGWINCH, SIGTSTP, SIGCONT, SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ELEMENTSOF(signals); i++)
		sigaddset(&set, signals[i]);
	sigprocmask(SIG_BLOCK, &set, &t->mask_before);
	t->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return t->signals < 0 ? -errno : 0;
}

/* ---- the verb ---- */

static void run(struct top *t)
{
	int64_t next = now_msec() + CTL_TOP_INTERVAL_MSEC;

	while (!t->done) {
		struct pollfd p[] = {{.fd = t->signals, .events = POLLIN},
			{.fd = t->keys ? STDIN_FILENO : -1, .events = POLLIN}};
		int64_t left = next - now_msec();
		int n = poll(p, 2, left > 0 ? (int)left : 0);

		if (n < 0 && errno != EINTR)
			t->done = true;
		if (n > 0 && p[0].revents)
			take_signal(t);
		if (n > 0 && p[1].revents)
			take_keys(t);
		if (!t->done && now_msec() >= next) {
			refresh(t);
			next = now_msec() + CTL_TOP_INTERVAL_MSEC;
		}
		if (!t->done)
			draw(t);
	}
}

static int live(struct top *t)
{
	int r = take_signals(t);

	if (r < 0) {
		ctl_complain(t->ctl, "top: %s", strerror(-r));
		return CTL_NO;
	}
	t->keys = isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &t->before) == 0;
	enter_screen(t);
	draw(t);
	run(t);
	leave_screen(t);
	close(t->signals);
	sigprocmask(SIG_SETMASK, &t->mask_before, NULL);
	return t->code;
}

/* Escape codes are of use to a terminal that is not a "dumb" one. */
static bool can_draw(FILE *f)
{
	const char *term = getenv("TERM");
	int fd = fileno(f);

	return fd >= 0 && isatty(fd) && term && *term && strcmp(term, "dumb") != 0;
}

int ctl_top(const struct ctl *ctl)
{
	struct top t = {.ctl = ctl, .view = {.width = CTL_WIDTH, .max_groups = SIZE_MAX}, .code = CTL_OK};
	int err;

	if (ctl->json)
		return ctl_status(ctl);
	t.status = ask(ctl, CTL_TIMEOUT_MSEC, &err);
	if (!t.status && err < 0)
		return ctl_unreachable(ctl, err);
	if (!t.status) {
		ctl_complain(ctl, "top: this mthpd does not know how");
		return CTL_NO;
	}
	if (ctl->count >= 0)
		t.view.max_groups = (size_t)ctl->count;
	if (can_draw(ctl->out))
		t.code = live(&t);
	else
		top_draw(ctl->out, t.status, &t.view, NULL);
	json_decref(t.status);
	return t.code;
}
