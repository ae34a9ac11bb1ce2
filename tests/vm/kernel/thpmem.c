// SPDX-License-Identifier: GPL-2.0-only
/*
 * thpmem: does to one piece of memory what it is told, step by step.
 *
 *   thpmem STEP...      each step is NAME or NAME=VALUE
 *
 * Memory, aligned to 2M; there is one piece at a time:
 *   anon=SIZE           private anonymous
 *   shmem=SIZE          shared anonymous
 *   tmpfs=FILE:SIZE     a file, created, mapped shared
 * Content: every page that was filled is remembered, and differs from all others.
 *   fill[=STEP]         write every page, or every STEP-th
 *   part=FROM:COUNT     write COUNT pages from page FROM on
 *   read[=COUNT]        read every page, or the first COUNT
 *   check               each filled page holds its content, each other one zeroes
 * madvise() over the piece: hugepage nohugepage pageout dontneed collapse;
 *   holes=STEP          MADV_DONTNEED every STEP-th page
 *   try-collapse        collapse that may fail; prints "try-collapse ERRNO"
 * Others:
 *   cgroup=DIR          move there         mark=FILE  create a file
 *   wait=FILE           until it exists    sleep=MSEC
 *   time=LABEL          print "LABEL NSEC" since the last time= (or the start)
 *   fork                the child rewrites all pages; both see only their own
 *   uffd                touch every page under a userfaultfd handler that gives
 *                       one page at a time; prints "uffd FAULTS"
 *   watch=FILE:MSEC     count the notifications of a cgroup file (POLLPRI);
 *                       prints "watch COUNT"
 * SIZE takes K, M, G. Ends with 0, or with 1 and one line on what went wrong.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096UL
#define ALIGN (2UL << 20)
#define WORDS 64 /* of each page that carry content */

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

static struct {
	uint8_t *at;
	size_t size;
	bool *filled;
	uint64_t salt;
	int64_t started;
} m;

static void __attribute__((noreturn, format(printf, 1, 2))) die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("thpmem: ", stdout);
	vprintf(format, args);
	putchar('\n');
	va_end(args);
	exit(1);
}

static int64_t now_nsec(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static size_t number(const char *text)
{
	char *end;
	size_t value = text ? strtoull(text, &end, 10) : 0;

	if (!text || end == text)
		die("not a number: %s", text ? text : "");
	switch (*end) {
	case 'K':
		return value << 10;
	case 'M':
		return value << 20;
	case 'G':
		return value << 30;
	case '\0':
	case ':':
		return value;
	default:
		die("not a number: %s", text);
	}
}

static void map(size_t size, int flags, int fd)
{
	uint8_t *p;

	if (m.at)
		munmap(m.at, m.size);
	/* Reserve more than needed, and map over the aligned part of it. */
	p = mmap(NULL, size + ALIGN, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		die("mmap: %s", strerror(errno));
	m.at = (uint8_t *)(((uintptr_t)p + ALIGN - 1) & ~(ALIGN - 1));
	if (mmap(m.at, size, PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd, 0) != m.at)
		die("mmap: %s", strerror(errno));
	m.size = size;
	free(m.filled);
	m.filled = calloc(size / PAGE, sizeof(*m.filled));
	m.salt = 1;
}

static uint64_t word(size_t page, unsigned int i, uint64_t salt)
{
	uint64_t x = (page + 1) * 0x9E3779B97F4A7C15ULL + i * 0xD1B54A32D192ED03ULL + salt;

	x ^= x >> 29;
	x *= 0xBF58476D1CE4E5B9ULL;
	return x ^ x >> 32;
}

static void fill(size_t page)
{
	uint64_t *w = (uint64_t *)(m.at + page * PAGE);

	for (unsigned int i = 0; i < WORDS; i++)
		w[i] = word(page, i, m.salt);
	m.filled[page] = true;
}

static void check(void)
{
	for (size_t page = 0; page < m.size / PAGE; page++) {
		const uint64_t *w = (const uint64_t *)(m.at + page * PAGE);

		for (unsigned int i = 0; i < WORDS; i++)
			if (w[i] != (m.filled[page] ? word(page, i, m.salt) : 0))
				die("page %zu, word %u: %#llx is wrong", page, i,
					(unsigned long long)w[i]);
	}
}

static void advise(int advice, const char *name, bool may_fail)
{
	int error = madvise(m.at, m.size, advice) ? errno : 0;

	if (may_fail)
		printf("%s %d\n", name, error);
	else if (error)
		die("%s: %s", name, strerror(error));
}

static void open_file(const char *value)
{
	char *path = strdup(value), *size = strchr(path, ':');
	int fd;

	if (!size)
		die("tmpfs=FILE:SIZE");
	*size++ = '\0';
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, (off_t)number(size)))
		die("%s: %s", path, strerror(errno));
	map(number(size), MAP_SHARED, fd);
	close(fd);
	free(path);
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		die("%s: %s", path, strerror(errno));
	close(fd);
}

static void do_fork(void)
{
	int status;
	pid_t child = fork();

	if (child < 0)
		die("fork: %s", strerror(errno));
	if (child == 0) {
		check();
		m.salt = 2;
		for (size_t page = 0; page < m.size / PAGE; page++)
			if (m.filled[page])
				fill(page);
		check();
		fflush(stdout);
		_exit(0);
	}
	if (waitpid(child, &status, 0) != child || status)
		die("the child saw something else: %d", status);
	check();
}

struct handler {
	int uffd;
	unsigned long faults;
};

static void *serve_faults(void *arg)
{
	struct handler *h = arg;
	static uint8_t page[PAGE] __attribute__((aligned(PAGE)));
	struct uffd_msg msg;

	while (read(h->uffd, &msg, sizeof(msg)) == sizeof(msg)) {
		struct uffdio_copy copy = {.src = (uintptr_t)page, .len = PAGE};

		if (msg.event != UFFD_EVENT_PAGEFAULT)
			break;
		copy.dst = msg.arg.pagefault.address & ~(PAGE - 1);
		((uint64_t *)page)[0] = copy.dst;
		h->faults++; /* before the copy, which wakes the one who reads it */
		if (ioctl(h->uffd, UFFDIO_COPY, &copy))
			die("UFFDIO_COPY: %s", strerror(errno));
	}
	return NULL;
}

static void do_uffd(void)
{
	struct handler h = {.uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC)};
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register range = {.range = {.start = (uintptr_t)m.at, .len = m.size},
		.mode = UFFDIO_REGISTER_MODE_MISSING};
	pthread_t thread;

	if (h.uffd < 0 || ioctl(h.uffd, UFFDIO_API, &api) || ioctl(h.uffd, UFFDIO_REGISTER, &range))
		die("userfaultfd: %s", strerror(errno));
	if (pthread_create(&thread, NULL, serve_faults, &h))
		die("no thread");
	for (size_t page = 0; page < m.size / PAGE; page++) {
		uint8_t *p = m.at + page * PAGE;

		if (*(volatile uint64_t *)p != (uintptr_t)p)
			die("page %zu is not the one the handler gave", page);
	}
	printf("uffd %lu\n", h.faults);
	ioctl(h.uffd, UFFDIO_UNREGISTER, &range.range);
	pthread_cancel(thread);
	pthread_join(thread, NULL);
	close(h.uffd);
}

static void do_watch(const char *value)
{
	char *path = strdup(value), *msec = strrchr(path, ':'), buffer[4096];
	int64_t end;
	unsigned int count = 0;
	struct pollfd p;

	if (!msec)
		die("watch=FILE:MSEC");
	*msec++ = '\0';
	end = now_nsec() + (int64_t)number(msec) * 1000000;
	p.fd = open(path, O_RDONLY | O_CLOEXEC);
	p.events = POLLPRI;
	if (p.fd < 0)
		die("%s: %s", path, strerror(errno));
	for (;;) {
		int64_t left = (end - now_nsec()) / 1000000;

		if (pread(p.fd, buffer, sizeof(buffer), 0) < 0)
			die("%s: %s", path, strerror(errno));
		if (left <= 0 || poll(&p, 1, (int)left) <= 0)
			break;
		count += (p.revents & POLLPRI) != 0;
	}
	printf("watch %u\n", count);
	close(p.fd);
	free(path);
}

static void content_step(const char *name, const char *value)
{
	size_t pages = m.size / PAGE, step = 1;
	uint64_t sum = 0;

	if (strcmp(name, "part") == 0) {
		size_t from = number(value), count = number(strchr(value, ':') + 1);

		for (size_t page = from; page < from + count && page < pages; page++)
			fill(page);
		return;
	}
	if (strcmp(name, "read") == 0) {
		if (value && number(value) < pages)
			pages = number(value);
		for (size_t page = 0; page < pages; page++)
			sum += *(volatile uint64_t *)(m.at + page * PAGE);
		return;
	}
	if (value)
		step = number(value);
	if (strcmp(name, "holes") == 0) {
		for (size_t page = 0; page < pages; page += step) {
			madvise(m.at + page * PAGE, PAGE, MADV_DONTNEED);
			m.filled[page] = false;
		}
		return;
	}
	for (size_t page = 0; page < pages; page += step)
		fill(page);
}

static void print_time(const char *label)
{
	int64_t now = now_nsec();

	printf("%s %lld\n", label, (long long)(now - m.started));
	m.started = now_nsec();
}

static const struct {
	const char *name;
	int advice;
	bool may_fail;
} advices[] = {
	{"hugepage", MADV_HUGEPAGE, false},
	{"nohugepage", MADV_NOHUGEPAGE, false},
	{"pageout", MADV_PAGEOUT, false},
	{"collapse", MADV_COLLAPSE, false},
	{"try-collapse", MADV_COLLAPSE, true},
};

static bool advice_step(const char *name)
{
	for (size_t i = 0; i < sizeof(advices) / sizeof(advices[0]); i++)
		if (strcmp(name, advices[i].name) == 0) {
			advise(advices[i].advice, name, advices[i].may_fail);
			return true;
		}
	if (strcmp(name, "dontneed") != 0)
		return false;
	advise(MADV_DONTNEED, name, false);
	memset(m.filled, 0, m.size / PAGE * sizeof(*m.filled));
	return true;
}

static bool world_step(const char *name, const char *value)
{
	char path[512];

	if (strcmp(name, "cgroup") == 0) {
		snprintf(path, sizeof(path), "%s/cgroup.procs", value);
		write_file(path, "0");
	} else if (strcmp(name, "mark") == 0) {
		write_file(value, "");
	} else if (strcmp(name, "wait") == 0) {
		while (access(value, F_OK))
			usleep(2000);
	} else if (strcmp(name, "sleep") == 0) {
		usleep((useconds_t)number(value) * 1000);
	} else if (strcmp(name, "time") == 0) {
		print_time(value);
	} else if (strcmp(name, "fork") == 0) {
		do_fork();
	} else if (strcmp(name, "uffd") == 0) {
		do_uffd();
	} else if (strcmp(name, "watch") == 0) {
		do_watch(value);
	} else {
		return false;
	}
	return true;
}

static void step(const char *name, const char *value)
{
	static const char *const content[] = {"fill", "part", "read", "holes"};

	if (strcmp(name, "anon") == 0) {
		map(number(value), MAP_PRIVATE | MAP_ANONYMOUS, -1);
		return;
	}
	if (strcmp(name, "shmem") == 0) {
		map(number(value), MAP_SHARED | MAP_ANONYMOUS, -1);
		return;
	}
	if (strcmp(name, "tmpfs") == 0) {
		open_file(value);
		return;
	}
	if (world_step(name, value))
		return;
	if (!m.at)
		die("%s: there is no memory yet", name);
	if (strcmp(name, "check") == 0) {
		check();
		return;
	}
	for (size_t i = 0; i < sizeof(content) / sizeof(content[0]); i++)
		if (strcmp(name, content[i]) == 0) {
			content_step(name, value);
			return;
		}
	if (!advice_step(name))
		die("unknown step %s", name);
}

int main(int argc, char **argv)
{
	m.started = now_nsec();
	for (int i = 1; i < argc; i++) {
		char *value = strchr(argv[i], '=');

		if (value)
			*value++ = '\0';
		step(argv[i], value);
		fflush(stdout);
	}
	return 0;
}
