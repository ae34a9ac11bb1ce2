/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "host.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cleanup.h"

#define SMALL_BYTES 1024
/* 200 to 300 lines; NUMA machines print the same lines as others. */
#define VMSTAT_BYTES (32 * 1024)
#define MEMINFO_BYTES (8 * 1024)
#define SWAPS_BYTES (16 * 1024)
/* A container host has thousands of mounts; beyond this the list is cut. */
#define READ_ALL_MAX (8 * 1024 * 1024)

#define MOUNTINFO "proc/self/mountinfo"

/* The whole of a file of unknown length, to be freed; at most READ_ALL_MAX
 * bytes of it, cut at the end of a line. */
static int read_all(int root_fd, const char *path, char **ret)
{
	_cleanup_close_ int fd = openat(root_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	_cleanup_free_ char *buf = NULL;
	size_t size = 0, len = 0;
	ssize_t n = 1;

	if (fd < 0)
		return -errno;
	while (n != 0) {
		if (len + 1 >= size) {
			char *larger;

			if (size >= READ_ALL_MAX)
				break;
			size = size ? size * 2 : 16 * 1024;
			larger = realloc(buf, size);
			if (!larger)
				return -ENOMEM;
			buf = larger;
		}
		n = read(fd, buf + len, size - len - 1);
		if (n < 0 && errno != EINTR)
			return -errno;
		len += n > 0 ? (size_t)n : 0;
	}
	if (n != 0) {
		while (len > 0 && buf[len - 1] != '\n')
			len--;
	}
	buf[len] = '\0';
	*ret = buf;
	buf = NULL;
	return 0;
}

static const struct flat_key meminfo_keys[] = {
	{ "MemTotal", offsetof(struct host_sample, mem_total_kb) },
	{ "MemAvailable", offsetof(struct host_sample, mem_available_kb) },
	{ "SwapTotal", offsetof(struct host_sample, swap_total_kb) },
	{ "SwapFree", offsetof(struct host_sample, swap_free_kb) },
};

static const struct flat_key vmstat_keys[] = {
	{ "workingset_refault_anon", offsetof(struct host_sample, refault_anon) },
	{ "pswpin", offsetof(struct host_sample, pswpin) },
	{ "pswpout", offsetof(struct host_sample, pswpout) },
	{ "pgfault", offsetof(struct host_sample, pgfault) },
	{ "pgmajfault", offsetof(struct host_sample, pgmajfault) },
	{ "compact_stall", offsetof(struct host_sample, compact_stall) },
	{ "compact_fail", offsetof(struct host_sample, compact_fail) },
	{ "thp_fault_alloc", offsetof(struct host_sample, thp_fault_alloc) },
	{ "thp_fault_fallback", offsetof(struct host_sample, thp_fault_fallback) },
	{ "thp_collapse_alloc", offsetof(struct host_sample, thp_collapse_alloc) },
	{ "thp_swpout_fallback", offsetof(struct host_sample, thp_swpout_fallback) },
};

/* Direct reclaim is counted by zone; which zones there are is the machine's. */
static const struct flat_key allocstall_keys[] = {
	{ "allocstall_dma", 0 * sizeof(uint64_t) },
	{ "allocstall_dma32", 1 * sizeof(uint64_t) },
	{ "allocstall_normal", 2 * sizeof(uint64_t) },
	{ "allocstall_high", 3 * sizeof(uint64_t) },
	{ "allocstall_movable", 4 * sizeof(uint64_t) },
	{ "allocstall_device", 5 * sizeof(uint64_t) },
};

static uint64_t sum_allocstall(const char *vmstat)
{
	uint64_t zones[ELEMENTSOF(allocstall_keys)], sum = VALUE_ABSENT;

	parse_flat_keyed(vmstat, allocstall_keys, ELEMENTSOF(allocstall_keys), zones);
	for (size_t i = 0; i < ELEMENTSOF(zones); i++) {
		if (value_known(zones[i]))
			sum = value_or(sum, 0) + zones[i];
	}
	return value_known(sum) ? sum : VALUE_ABSENT;
}

/* Each reader fills its part or leaves it absent, and says whether the file
 * could be read. */
static bool read_vmstat(int root_fd, struct host_sample *s)
{
	char buf[VMSTAT_BYTES];

	if (parse_read_at(root_fd, "proc/vmstat", buf, sizeof(buf)) < 0)
		return false;
	parse_flat_keyed(buf, vmstat_keys, ELEMENTSOF(vmstat_keys), s);
	s->allocstall = sum_allocstall(buf);
	return true;
}

static bool read_meminfo(int root_fd, struct host_sample *s)
{
	char buf[MEMINFO_BYTES];

	if (parse_read_at(root_fd, "proc/meminfo", buf, sizeof(buf)) < 0)
		return false;
	parse_flat_keyed(buf, meminfo_keys, ELEMENTSOF(meminfo_keys), s);
	return true;
}

static bool read_swaps(int root_fd, struct host_sample *s)
{
	char buf[SWAPS_BYTES];

	if (parse_read_at(root_fd, "proc/swaps", buf, sizeof(buf)) < 0)
		return false;
	parse_swaps(buf, &s->swaps_size_kb, &s->swaps_used_kb);
	return true;
}

static bool read_pressure(int root_fd, struct host_sample *s)
{
	char buf[SMALL_BYTES];
	ssize_t n = parse_read_at(root_fd, "proc/pressure/memory", buf, sizeof(buf));

	s->psi.some = s->psi.full = (struct psi_line){ VALUE_ABSENT, 0 };
	s->psi_errno = n < 0 ? (int)-n : -parse_psi(buf, &s->psi);
	return n >= 0;
}

static bool read_min_free(int root_fd, struct host_sample *s)
{
	char buf[SMALL_BYTES];
	uint64_t v;

	if (parse_read_at(root_fd, "proc/sys/vm/min_free_kbytes", buf, sizeof(buf)) < 0)
		return false;
	if (parse_u64(buf, &v) == 0 && value_known(v))
		s->min_free_kbytes = v;
	return true;
}

int host_sample_read(int root_fd, uint64_t now_usec, struct host_sample *ret)
{
	struct host_sample s;
	bool any;

	memset(&s, 0xff, sizeof(s)); /* VALUE_ABSENT throughout */
	s.now_usec = now_usec;
	any = read_pressure(root_fd, &s);
	any |= read_vmstat(root_fd, &s);
	any |= read_meminfo(root_fd, &s);
	any |= read_swaps(root_fd, &s);
	any |= read_min_free(root_fd, &s);
	if (!any)
		return -ENOENT;
	*ret = s;
	return 0;
}

/* True when @word is one of the words of @s, which @separators divide. */
static bool has_word(const char *s, const char *word, const char *separators)
{
	size_t n = strlen(word);

	while (*s) {
		size_t len = strcspn(s, separators);

		if (len == n && memcmp(s, word, n) == 0)
			return true;
		s += len;
		s += strspn(s, separators);
	}
	return false;
}

/* The next parameter of a kernel command line, without its quotation marks
 * (lib/cmdline.c: next_arg); false at the end and at "--", behind which
 * everything is for init. What does not fit is cut. */
static bool next_param(const char **pos, char *word, size_t size)
{
	const char *s = *pos + strspn(*pos, " \t\n");
	bool quoted = false;
	size_t len = 0;

	for (; *s && (quoted || !strchr(" \t\n", *s)); s++) {
		if (*s == '"')
			quoted = !quoted;
		else if (len + 1 < size)
			word[len++] = *s;
	}
	word[len] = '\0';
	*pos = s;
	return len > 0 && strcmp(word, "--") != 0;
}

/* The value of @word if it is the parameter @name, else NULL. The kernel takes
 * '-' and '_' in a name for the same. */
static const char *param_value(const char *word, const char *name)
{
	for (; *name; word++, name++) {
		if (*word != *name && !(*word == '-' && *name == '_'))
			return NULL;
	}
	return *word == '=' ? word + 1 : NULL;
}

/* The first parameter that @match likes, cut to @size; false if there is none. */
typedef bool (*param_match)(const char *word);
static bool find_param(int root_fd, param_match match, char *ret_word, size_t size)
{
	_cleanup_free_ char *cmdline = NULL;
	const char *pos;
	char word[256];

	if (read_all(root_fd, "proc/cmdline", &cmdline) < 0)
		return false;
	pos = cmdline;
	while (next_param(&pos, word, sizeof(word))) {
		if (match(word)) {
			snprintf(ret_word, size, "%.*s", (int)size - 1, word);
			return true;
		}
	}
	return false;
}

static bool is_thp_never(const char *word)
{
	const char *value = param_value(word, "transparent_hugepage");

	return value && strcmp(value, "never") == 0;
}

bool host_boot_never(int root_fd)
{
	char word[64];

	return find_param(root_fd, is_thp_never, word, sizeof(word));
}

static bool is_memory_disabled(const char *word)
{
	const char *value = param_value(word, "cgroup_disable");

	return value && has_word(value, "memory", ",");
}

static bool is_legacy_hierarchy(const char *word)
{
	const char *value = param_value(word, "systemd.unified_cgroup_hierarchy");

	return value && has_word("0 no n false f off", value, " ");
}

enum memory_on_v2 { MEMORY_LACKING, MEMORY_UNKNOWN, MEMORY_THERE };

struct cgroup_mounts {
	int root_fd;
	char v2[PATH_MAX];
	enum memory_on_v2 v2_memory;
	bool v1, v1_memory;
};

static enum memory_on_v2 memory_at(int root_fd, const char *mount_point)
{
	char path[PATH_MAX + 32], buf[SMALL_BYTES];

	snprintf(path, sizeof(path), ".%s/cgroup.controllers", mount_point);
	if (parse_read_attr_at(root_fd, path, buf, sizeof(buf)) < 0)
		return MEMORY_UNKNOWN;
	return has_word(buf, "memory", " \n") ? MEMORY_THERE : MEMORY_LACKING;
}

/* cgroup2 may be mounted more than once, also a part of it (containers): the
 * first mount that knows the memory controller counts, else the first. */
static int note_mount(
	const char *mount_point, const char *fs_type, const char *super_options, void *userdata)
{
	struct cgroup_mounts *m = userdata;

	if (strcmp(fs_type, "cgroup") == 0) {
		m->v1 = true;
		m->v1_memory |= has_word(super_options, "memory", ",");
	} else if (strcmp(fs_type, "cgroup2") == 0) {
		enum memory_on_v2 memory = memory_at(m->root_fd, mount_point);

		if (!m->v2[0] || memory > m->v2_memory) {
			snprintf(m->v2, sizeof(m->v2), "%s", mount_point);
			m->v2_memory = memory;
		}
	}
	return 0;
}

static bool has_entries(int root_fd, const char *path)
{
	_cleanup_close_ int fd = openat(root_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_closedir_ DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *entry;

	if (!dir)
		return false;
	take_fd(&fd);
	while ((entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			return true;
	}
	return false;
}

/* The "memory" line of /proc/cgroups: name, hierarchy, groups, enabled. Kernels
 * without v1 support for it print none, so its absence says nothing. */
static void read_proc_cgroups(int root_fd, bool *ret_on_v1, bool *ret_disabled)
{
	char buf[SMALL_BYTES * 4], hierarchy[16], enabled[16];
	const char *line;

	*ret_on_v1 = *ret_disabled = false;
	if (parse_read_at(root_fd, "proc/cgroups", buf, sizeof(buf)) < 0)
		return;
	for (line = buf; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (sscanf(line, "memory%*[ \t]%15s %*15s %15s", hierarchy, enabled) == 2) {
			*ret_on_v1 = strcmp(hierarchy, "0") != 0;
			*ret_disabled = strcmp(enabled, "0") == 0;
			return;
		}
	}
}

static enum host_cgroup_mode classify(int root_fd, const struct cgroup_mounts *m)
{
	bool on_v1, disabled;
	char word[64];

	if (!m->v2[0])
		return m->v1 ? HOST_CGROUP_V1 : HOST_CGROUP_NONE;
	if (m->v2_memory == MEMORY_THERE)
		return HOST_CGROUP_V2;
	read_proc_cgroups(root_fd, &on_v1, &disabled);
	if (disabled)
		return HOST_CGROUP_NO_MEMORY;
	if (m->v1_memory || on_v1)
		return HOST_CGROUP_HYBRID;
	if (m->v2_memory == MEMORY_LACKING ||
		find_param(root_fd, is_memory_disabled, word, sizeof(word)))
		return HOST_CGROUP_NO_MEMORY;
	return HOST_CGROUP_V2;
}

int host_cgroups_find(int root_fd, struct host_cgroups *ret)
{
	_cleanup_free_ char *mountinfo = NULL;
	struct cgroup_mounts m = { .root_fd = root_fd };
	int r = read_all(root_fd, MOUNTINFO, &mountinfo);

	if (r == -ENOMEM)
		return r;
	if (r == 0)
		parse_mountinfo(mountinfo, note_mount, &m);
	if (!m.v2[0] && !m.v1 && has_entries(root_fd, "sys/fs/cgroup"))
		note_mount("/sys/fs/cgroup", "cgroup2", "", &m);
	memset(ret, 0, sizeof(*ret));
	ret->mode = classify(root_fd, &m);
	memcpy(ret->mount_point, m.v2, sizeof(ret->mount_point));
	if (ret->mode == HOST_CGROUP_NO_MEMORY)
		find_param(root_fd, is_memory_disabled, ret->boot_option, sizeof(ret->boot_option));
	else if (ret->mode == HOST_CGROUP_HYBRID || ret->mode == HOST_CGROUP_V1)
		find_param(
			root_fd, is_legacy_hierarchy, ret->boot_option, sizeof(ret->boot_option));
	return 0;
}

const char *host_cgroup_mode_to_string(enum host_cgroup_mode m)
{
	static const char *const names[] = {
		[HOST_CGROUP_V2] = "v2",
		[HOST_CGROUP_HYBRID] = "hybrid",
		[HOST_CGROUP_V1] = "v1",
		[HOST_CGROUP_NO_MEMORY] = "no-memory-controller",
		[HOST_CGROUP_NONE] = "none",
		[HOST_CGROUP_UNREACHABLE] = "unreachable",
	};

	return (unsigned)m < ELEMENTSOF(names) ? names[m] : NULL;
}

struct tmpfs_walk {
	host_tmpfs_fn fn;
	void *userdata;
};

static int note_tmpfs(
	const char *mount_point, const char *fs_type, const char *super_options, void *userdata)
{
	static const char *const own[] = { "always", "within_size", "advise" };
	const struct tmpfs_walk *walk = userdata;
	char option[32];

	if (strcmp(fs_type, "tmpfs") != 0)
		return 0;
	for (size_t i = 0; i < ELEMENTSOF(own); i++) {
		snprintf(option, sizeof(option), "huge=%s", own[i]);
		if (has_word(super_options, option, ","))
			walk->fn(mount_point, own[i], walk->userdata);
	}
	return 0;
}

void host_tmpfs_huge(int root_fd, host_tmpfs_fn fn, void *userdata)
{
	_cleanup_free_ char *mountinfo = NULL;
	struct tmpfs_walk walk = { fn, userdata };

	if (read_all(root_fd, MOUNTINFO, &mountinfo) == 0)
		parse_mountinfo(mountinfo, note_tmpfs, &walk);
}
