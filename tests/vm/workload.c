// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * workload: a memory load that does exactly what it is told, for guests.
 *
 *   workload [--cgroup=DIR] [--seed=N] [--report-msec=N] [--wait=FILE] [--no-thp] PHASE...
 *   PHASE = MODE[:KEY=VALUE[,KEY=VALUE]...]
 *
 * Modes on one resident set (kept between phases, of the other modes too; a
 * smaller size gives the rest back, fresh=1 gives all of it back first):
 *   random   single pages, uniformly
 *   runs     run=16 neighbouring pages from a random aligned place
 *   seq      page after page, round and round
 *   sparse   as seq, one page in stride=16
 * Modes on fresh memory:
 *   fill     map size, touch every page, unmap, again
 *   churn    live=8 maps of 64K..2M; of each only the first use=12 percent touched
 * Others:
 *   stream   read file=PATH block by block, round and round (a touch = 4 KiB)
 *   idle     sleep
 * Keys: size (K, M, G), touches (amount of work) or seconds; run, stride, live,
 * use; work (rounds of arithmetic per touch, default 20); write (percent of the
 * touches that write, default 100); content (bytes of pseudo-random content put
 * into each page when it is populated, default 512, so that a compressor has
 * something to do); rate (touches per second, 0 = flat out); populate=0|1
 * (touch the whole set in order before the measured work; default 1 for random,
 * runs and seq), fresh.
 *
 * Prints one JSON object per line: "start", per phase "phase", "ready" (after
 * populating), "report" every --report-msec, "done"; at the end "end". `t` is
 * CLOCK_MONOTONIC in seconds; touches are counted exactly and per phase, without
 * those of populating. The same seed and arguments do the same touches. --no-thp
 * opts out of large folios as a program does for itself, by PR_SET_THP_DISABLE.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096UL
#define HUGE_ALIGN (2UL << 20)
#define NSEC 1000000000LL
#define CLOCK_EVERY 16 /* touches between two looks at the clock */

enum mode { RANDOM, RUNS, SEQ, SPARSE, FILL, CHURN, STREAM, IDLE };
static const char *const mode_names[] = { "random", "runs", "seq", "sparse",
					  "fill", "churn", "stream", "idle" };
#define N_MODES (sizeof(mode_names) / sizeof(mode_names[0]))

struct phase {
	enum mode mode;
	uint64_t size, touches, run, stride, live, use, work, write, content, rate;
	double seconds;
	bool populate, fresh;
	char file[256];
};

static struct {
	uint64_t rng;
	uint64_t touches; /* of this phase */
	uint64_t total;
	unsigned int index;
	const struct phase *phase;
	int64_t phase_start, deadline, next_report, report_nsec;
	uint8_t *set;
	uint64_t set_size, set_used; /* mapped; currently populated or in use */
	uint64_t sink;
} w;

static int64_t now_nsec(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * NSEC + ts.tv_nsec;
}

static void __attribute__((noreturn, format(printf, 1, 2))) die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fprintf(stderr, "workload: ");
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	exit(2);
}

static uint64_t rnd(void)
{
	w.rng ^= w.rng >> 12;
	w.rng ^= w.rng << 25;
	w.rng ^= w.rng >> 27;
	return w.rng * 0x2545F4914F6CDD1DULL;
}

static uint64_t rnd_below(uint64_t limit)
{
	return (uint64_t)(((unsigned __int128)rnd() * limit) >> 64);
}

static double seconds_of(struct timeval tv)
{
	return (double)tv.tv_sec + (double)tv.tv_usec / 1e6;
}

static void print_event(const char *event)
{
	struct rusage usage;
	int64_t now = now_nsec(CLOCK_MONOTONIC);

	getrusage(RUSAGE_SELF, &usage);
	printf("{\"t\":%.6f,\"event\":\"%s\",\"phase\":%u,\"mode\":\"%s\",\"elapsed\":%.6f,"
	       "\"touches\":%" PRIu64 ",\"total\":%" PRIu64 ",\"minflt\":%ld,\"majflt\":%ld,"
	       "\"utime\":%.6f,\"stime\":%.6f}\n",
	       (double)now / 1e9, event, w.index, w.phase ? mode_names[w.phase->mode] : "none",
	       (double)(now - w.phase_start) / 1e9, w.touches, w.total, usage.ru_minflt,
	       usage.ru_majflt, seconds_of(usage.ru_utime), seconds_of(usage.ru_stime));
	fflush(stdout);
}

static void sleep_until(int64_t nsec)
{
	struct timespec ts = { nsec / NSEC, nsec % NSEC };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

/* Report when it is time; false when the phase's time is over. */
static bool look_at_clock(void)
{
	int64_t now = now_nsec(CLOCK_MONOTONIC_COARSE);

	if (w.report_nsec && now >= w.next_report) {
		print_event("report");
		w.next_report += w.report_nsec;
		if (w.next_report <= now)
			w.next_report = now + w.report_nsec;
	}
	return !w.deadline || now < w.deadline;
}

/* Keep to the phase's rate, in steps of a hundredth of a second. */
static void pace(void)
{
	uint64_t batch = w.phase->rate / 100 ? w.phase->rate / 100 : 1;

	if (w.touches % batch == 0)
		sleep_until(w.phase_start +
			    (int64_t)((double)w.touches * 1e9 / (double)w.phase->rate));
}

/* Count one touch; false when the phase is over. */
static bool count_touch(void)
{
	w.touches++;
	w.total++;
	if (w.phase->touches && w.touches >= w.phase->touches)
		return false;
	if (w.phase->rate)
		pace();
	if (w.touches % CLOCK_EVERY == 0 || w.phase->rate)
		return look_at_clock();
	return true;
}

static void compute(uint64_t rounds)
{
	uint64_t x = w.sink | 1;

	for (uint64_t i = 0; i < rounds; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
	}
	w.sink = x;
}

static bool touch(uint8_t *page)
{
	volatile uint64_t *word = (volatile uint64_t *)page;

	/* Write first: a read would put the zero page there, and the write that
	 * follows could only copy one small page. */
	if (w.phase->write >= 100 || rnd_below(100) < w.phase->write)
		*word = w.total | 1;
	w.sink += *word;
	compute(w.phase->work);
	return count_touch();
}

static void put_content(uint8_t *page, uint64_t bytes)
{
	uint64_t *word = (uint64_t *)page;

	*word = 1;
	for (uint64_t i = 0; i < bytes / 8; i++)
		word[i] = rnd();
}

static uint8_t *map_anonymous(uint64_t size)
{
	uint8_t *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		die("mmap %" PRIu64 ": %s", size, strerror(errno));
	return p;
}

static void shrink_set(uint64_t size)
{
	if (size < w.set_used)
		madvise(w.set + size, w.set_used - size, MADV_DONTNEED);
	w.set_used = w.set_used < size ? w.set_used : size;
}

static void prepare_set(const struct phase *p)
{
	uint64_t from;

	shrink_set(p->fresh ? 0 : p->size);
	from = w.set_used;
	w.set_used = p->size;
	if (!p->populate)
		return;
	for (uint64_t at = from; at < p->size; at += PAGE) {
		put_content(w.set + at, p->content);
		if (at / PAGE % CLOCK_EVERY == 0)
			look_at_clock();
	}
}

static void do_random(const struct phase *p)
{
	while (touch(w.set + rnd_below(p->size / PAGE) * PAGE))
		;
}

static void do_runs(const struct phase *p)
{
	uint64_t runs = p->size / PAGE / p->run;

	for (;;) {
		uint8_t *start = w.set + rnd_below(runs) * p->run * PAGE;

		for (uint64_t i = 0; i < p->run; i++)
			if (!touch(start + i * PAGE))
				return;
	}
}

static void do_scan(const struct phase *p, uint64_t step)
{
	for (;;)
		for (uint64_t at = 0; at < p->size; at += step)
			if (!touch(w.set + at))
				return;
}

static void do_fill(const struct phase *p)
{
	bool more = true;

	while (more) {
		uint8_t *map = map_anonymous(p->size);

		for (uint64_t at = 0; at < p->size && more; at += PAGE)
			more = touch(map + at);
		munmap(map, p->size);
	}
}

static void do_churn(const struct phase *p)
{
	struct {
		uint8_t *start;
		uint64_t size;
	} ring[64] = { 0 };
	bool more = true;

	for (uint64_t n = 0; more; n = (n + 1) % p->live) {
		uint64_t size = (64UL << 10) << rnd_below(6);
		uint64_t used = size / PAGE * p->use / 100;

		if (ring[n].start)
			munmap(ring[n].start, ring[n].size);
		ring[n].start = map_anonymous(size);
		ring[n].size = size;
		for (uint64_t i = 0; i < (used ? used : 1) && more; i++)
			more = touch(ring[n].start + i * PAGE);
	}
	for (uint64_t n = 0; n < p->live; n++)
		if (ring[n].start)
			munmap(ring[n].start, ring[n].size);
}

static void do_stream(const struct phase *p)
{
	static uint8_t block[64 << 10];
	int fd = open(p->file, O_RDONLY | O_CLOEXEC);
	off_t at = 0;

	if (fd < 0)
		die("%s: %s", p->file, strerror(errno));
	for (;;) {
		ssize_t got = pread(fd, block, sizeof(block), at);

		if (got < 0)
			die("%s: %s", p->file, strerror(errno));
		if (got == 0 && at == 0)
			die("%s: empty", p->file);
		at = got == 0 ? 0 : at + got;
		for (ssize_t i = 0; i < got; i += (ssize_t)PAGE)
			if (!touch(block + i)) {
				close(fd);
				return;
			}
	}
}

static void do_idle(void)
{
	int64_t step = w.report_nsec ? w.report_nsec : NSEC;
	int64_t next = w.phase_start;

	do {
		next += step;
		sleep_until(w.deadline && w.deadline < next ? w.deadline + 10000000 : next);
	} while (look_at_clock());
}

static void run_phase(const struct phase *p, unsigned int index)
{
	w.phase = p;
	w.index = index;
	w.touches = 0;
	w.deadline = 0;
	w.phase_start = now_nsec(CLOCK_MONOTONIC);
	w.next_report = w.phase_start + w.report_nsec;
	print_event("phase");
	if (p->mode <= SPARSE)
		prepare_set(p);
	else if (p->fresh)
		shrink_set(0);
	w.phase_start = now_nsec(CLOCK_MONOTONIC);
	w.next_report = w.phase_start + w.report_nsec;
	if (p->seconds > 0)
		w.deadline = w.phase_start + (int64_t)(p->seconds * 1e9);
	print_event("ready");

	switch (p->mode) {
	case RANDOM: do_random(p); break;
	case RUNS: do_runs(p); break;
	case SEQ: do_scan(p, PAGE); break;
	case SPARSE: do_scan(p, p->stride * PAGE); break;
	case FILL: do_fill(p); break;
	case CHURN: do_churn(p); break;
	case STREAM: do_stream(p); break;
	case IDLE: do_idle(); break;
	}
	print_event("done");
}

static uint64_t parse_number(const char *key, const char *text)
{
	char *end;
	uint64_t value;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || end == text || *text == '-')
		die("bad number for %s: %s", key, text);
	switch (*end) {
	case 'K': value <<= 10; end++; break;
	case 'M': value <<= 20; end++; break;
	case 'G': value <<= 30; end++; break;
	}
	if (*end)
		die("bad number for %s: %s", key, text);
	return value;
}

static void set_key(struct phase *p, const char *key, const char *value)
{
	const struct {
		const char *key;
		uint64_t *field;
	} numbers[] = {
		{ "size", &p->size },	    { "touches", &p->touches }, { "run", &p->run },
		{ "stride", &p->stride },   { "live", &p->live },	{ "use", &p->use },
		{ "work", &p->work },	    { "write", &p->write },	{ "rate", &p->rate },
		{ "content", &p->content },
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (strcmp(key, numbers[i].key) == 0) {
			*numbers[i].field = parse_number(key, value);
			return;
		}
	if (strcmp(key, "seconds") == 0)
		p->seconds = strtod(value, NULL);
	else if (strcmp(key, "populate") == 0)
		p->populate = parse_number(key, value) != 0;
	else if (strcmp(key, "fresh") == 0)
		p->fresh = parse_number(key, value) != 0;
	else if (strcmp(key, "file") == 0)
		snprintf(p->file, sizeof(p->file), "%s", value);
	else
		die("unknown key %s", key);
}

static void check_phase(const struct phase *p, const char *text)
{
	if (!p->touches && !(p->seconds > 0))
		die("%s: needs touches= or seconds=", text);
	if (p->mode == IDLE && p->touches)
		die("%s: idle is given in seconds", text);
	if (p->size < PAGE || p->size % PAGE || !p->run || p->run > p->size / PAGE || !p->stride)
		die("%s: size, run or stride out of range", text);
	if (!p->live || p->live > 64 || p->use > 100 || p->content > PAGE)
		die("%s: live, use or content out of range", text);
	if (p->mode == STREAM && !p->file[0])
		die("%s: needs file=", text);
}

static struct phase parse_phase(const char *text)
{
	struct phase p = { .size = 32UL << 20, .run = 16, .stride = 16, .live = 8, .use = 12,
			   .work = 20, .write = 100, .content = 512 };
	char *copy = strdup(text), *keys = strchr(copy, ':'), *item;
	size_t mode;

	if (keys)
		*keys++ = '\0';
	for (mode = 0; mode < N_MODES; mode++)
		if (strcmp(copy, mode_names[mode]) == 0)
			break;
	if (mode == N_MODES)
		die("unknown mode %s", copy);
	p.mode = (enum mode)mode;
	p.populate = p.mode <= SEQ;
	while ((item = strsep(&keys, ","))) {
		char *value = strchr(item, '=');

		if (!value)
			die("%s: not KEY=VALUE", item);
		*value++ = '\0';
		set_key(&p, item, value);
	}
	free(copy);
	check_phase(&p, text);
	return p;
}

static void join_cgroup(const char *dir)
{
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "0", 1) != 1)
		die("%s: %s", path, strerror(errno));
	close(fd);
}

static void opt_out_of_thp(void)
{
	if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0)
		die("PR_SET_THP_DISABLE: %s", strerror(errno));
}

static void map_set(const struct phase *phases, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		if (phases[i].mode <= SPARSE && phases[i].size > w.set_size)
			w.set_size = phases[i].size;
	if (w.set_size) {
		uintptr_t start = (uintptr_t)map_anonymous(w.set_size + HUGE_ALIGN);

		w.set = (uint8_t *)((start + HUGE_ALIGN - 1) & ~(HUGE_ALIGN - 1));
	}
}

int main(int argc, char **argv)
{
	static struct phase phases[64];
	const char *wait_file = NULL;
	unsigned int n = 0;

	w.rng = 1;
	for (int i = 1; i < argc; i++) {
		if (strncmp(argv[i], "--cgroup=", 9) == 0)
			join_cgroup(argv[i] + 9);
		else if (strncmp(argv[i], "--seed=", 7) == 0)
			w.rng = parse_number("seed", argv[i] + 7);
		else if (strncmp(argv[i], "--report-msec=", 14) == 0)
			w.report_nsec = (int64_t)parse_number("report", argv[i] + 14) * 1000000;
		else if (strncmp(argv[i], "--wait=", 7) == 0)
			wait_file = argv[i] + 7;
		else if (strcmp(argv[i], "--no-thp") == 0)
			opt_out_of_thp();
		else if (argv[i][0] == '-')
			die("unknown option %s", argv[i]);
		else if (n == sizeof(phases) / sizeof(phases[0]))
			die("too many phases");
		else
			phases[n++] = parse_phase(argv[i]);
	}
	if (!n)
		die("no phase given");
	w.rng = w.rng * 0x9E3779B97F4A7C15ULL + 1; /* never 0, and small seeds differ */
	map_set(phases, n);
	w.phase_start = now_nsec(CLOCK_MONOTONIC);
	print_event("start");
	while (wait_file && access(wait_file, F_OK) != 0)
		usleep(10000);
	for (unsigned int i = 0; i < n; i++)
		run_phase(&phases[i], i);
	print_event("end");
	return 0;
}
