/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "thp.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cleanup.h"

/* The longest file is shmem_enabled, 60 bytes; sysfs itself ends at a page. */
#define FILE_BYTES 512

#define SIZE_PREFIX "hugepages-"
#define SIZE_SUFFIX "kB"

static const char *const mode_names[] = {
	[THP_NEVER] = "never",
	[THP_MADVISE] = "madvise",
	[THP_ALWAYS] = "always",
	[THP_INHERIT] = "inherit",
};

const char *thp_mode_to_string(enum thp_mode m)
{
	return m >= THP_NEVER && m <= THP_INHERIT ? mode_names[m] : NULL;
}

enum thp_mode thp_mode_from_string(const char *s)
{
	for (size_t i = 0; s && i < ELEMENTSOF(mode_names); i++) {
		if (strcmp(s, mode_names[i]) == 0)
			return (enum thp_mode)i;
	}
	return THP_MODE_NONE;
}

enum thp_mode thp_choice_mode(const struct choice *c)
{
	return thp_mode_from_string(choice_value(c));
}

enum thp_mode thp_effective(enum thp_mode mode, enum thp_mode top)
{
	return mode == THP_INHERIT ? top : mode;
}

const char *thp_shmem_effective(const struct choice *size, const struct choice *top)
{
	const char *own = choice_value(size), *global = choice_value(top);
	bool inherits;

	if (!own)
		return NULL;
	inherits = strcmp(own, "inherit") == 0;
	if (global && strcmp(global, "deny") == 0)
		return "never";
	if (global && strcmp(global, "force") == 0)
		return inherits ? "always" : "never";
	return inherits ? global : own;
}

const char *thp_size_path(char buf[THP_PATH_MAX], uint64_t size_kb, const char *file)
{
	snprintf(buf, THP_PATH_MAX, SIZE_PREFIX "%" PRIu64 SIZE_SUFFIX "/%s", size_kb, file);
	return buf;
}

static uint64_t read_number(int dirfd, const char *path)
{
	char buf[FILE_BYTES];
	uint64_t v;

	if (parse_read_attr_at(dirfd, path, buf, sizeof(buf)) < 0 || parse_u64(buf, &v) < 0)
		return VALUE_ABSENT;
	return value_known(v) ? v : VALUE_ABSENT;
}

/* True when the file's text is understood or the file is not there; false when it
 * is there and says nothing. @ret has n = 0 unless understood. */
static bool read_choice(int dirfd, const char *path, struct choice *ret)
{
	char buf[FILE_BYTES];
	ssize_t r;

	memset(ret, 0, sizeof(*ret));
	r = parse_read_attr_at(dirfd, path, buf, sizeof(buf));
	if (r < 0)
		return r == -ENOENT || r == -ENODEV;
	return parse_choice(buf, ret) == 0;
}

/* "hugepages-<digits>kB" as a size; no leading zero, since the name is built
 * again from the number. */
static bool parse_size_name(const char *name, uint64_t *ret_size_kb)
{
	size_t len = strlen(name), prefix = strlen(SIZE_PREFIX), suffix = strlen(SIZE_SUFFIX);
	char digits[20];

	if (len <= prefix + suffix || len - prefix - suffix >= sizeof(digits))
		return false;
	if (memcmp(name, SIZE_PREFIX, prefix) != 0 || strcmp(name + len - suffix, SIZE_SUFFIX) != 0)
		return false;
	len -= prefix + suffix;
	memcpy(digits, name + prefix, len);
	digits[len] = '\0';
	if (strspn(digits, "0123456789") != len || digits[0] == '0')
		return false;
	return parse_u64(digits, ret_size_kb) == 0;
}

static bool is_directory(int dirfd, const struct dirent *entry)
{
	struct stat st;

	if (entry->d_type != DT_UNKNOWN)
		return entry->d_type == DT_DIR;
	return fstatat(dirfd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static DIR *open_listing(int dirfd, const char *path)
{
	_cleanup_close_ int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

	if (dir)
		take_fd(&fd);
	return dir;
}

/* Inserts into the ascending list; a full list loses its smallest. */
static unsigned insert_size(uint64_t sizes[THP_SIZES_MAX], unsigned n, uint64_t size_kb)
{
	unsigned at = n;

	if (n == THP_SIZES_MAX) {
		if (size_kb < sizes[0])
			return n;
		memmove(&sizes[0], &sizes[1], sizeof(sizes[0]) * (THP_SIZES_MAX - 1));
		at = --n;
	}
	while (at > 0 && sizes[at - 1] > size_kb) {
		sizes[at] = sizes[at - 1];
		at--;
	}
	sizes[at] = size_kb;
	return n + 1;
}

static unsigned list_sizes(int dirfd, uint64_t sizes[THP_SIZES_MAX])
{
	_cleanup_closedir_ DIR *dir = open_listing(dirfd, ".");
	const struct dirent *entry;
	unsigned n = 0;
	uint64_t size_kb;

	while (dir && (entry = readdir(dir))) {
		if (parse_size_name(entry->d_name, &size_kb) && is_directory(dirfd, entry))
			n = insert_size(sizes, n, size_kb);
	}
	return n;
}

static bool has_collapse_counter(int dirfd, uint64_t size_kb)
{
	char path[THP_PATH_MAX];
	_cleanup_closedir_ DIR *dir = open_listing(dirfd, thp_size_path(path, size_kb, "stats"));
	const struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		if (strncmp(entry->d_name, "collapse_", strlen("collapse_")) == 0)
			return true;
	}
	return false;
}

/* hpage_pmd_size in KiB, 0 when it is absent or no power of two of pages. */
static uint64_t read_pmd_kb(int dirfd)
{
	uint64_t bytes = read_number(dirfd, "hpage_pmd_size");

	if (!value_known(bytes) || bytes < 8192 || (bytes & (bytes - 1)) != 0)
		return 0;
	return bytes / 1024;
}

/* What one page of 8-byte entries maps, in KiB: 4 -> 2048, 16 -> 32768. */
static uint64_t pmd_kb_of_page(uint64_t page_kb)
{
	return page_kb * (page_kb * 1024 / 8);
}

unsigned thp_guess_page_kb(int dirfd, unsigned fallback_kb)
{
	uint64_t sizes[THP_SIZES_MAX], pmd_kb = read_pmd_kb(dirfd);
	unsigned n = list_sizes(dirfd, sizes);

	if (pmd_kb == 0 && n > 0)
		pmd_kb = sizes[n - 1];
	for (unsigned page_kb = 4; page_kb <= 64; page_kb *= 2) {
		if (pmd_kb_of_page(page_kb) == pmd_kb)
			return page_kb;
	}
	for (unsigned i = 0; i < n; i++) {
		char path[THP_PATH_MAX];
		uint64_t page_kb = sizes[i] / 4;

		if (faccessat(dirfd, thp_size_path(path, sizes[i], "enabled"), F_OK, 0) < 0)
			continue;
		if (page_kb >= 4 && page_kb <= 64 && (page_kb & (page_kb - 1)) == 0)
			return (unsigned)page_kb;
		break;
	}
	return fallback_kb;
}

static void not_understood(struct thp_tree *t, const char *path)
{
	if (!t->unparseable)
		snprintf(t->unparseable_path, sizeof(t->unparseable_path), "%s", path);
	t->unparseable = true;
}

static void read_size(int dirfd, uint64_t size_kb, struct thp_tree *t)
{
	struct thp_size *size = &t->sizes[t->n_sizes++];
	char path[THP_PATH_MAX];

	size->size_kb = size_kb;
	thp_size_path(path, size_kb, "enabled");
	size->enabled_unparseable = !read_choice(dirfd, path, &size->enabled);
	if (faccessat(dirfd, path, F_OK, 0) == 0)
		t->per_size = true;
	if (size->enabled_unparseable)
		not_understood(t, path);
	if (!read_choice(dirfd, thp_size_path(path, size_kb, "shmem_enabled"), &size->shmem_enabled))
		not_understood(t, path);
	if (faccessat(dirfd, thp_size_path(path, size_kb, "stats/swpin"), F_OK, 0) == 0)
		t->size_swpin = true;
	if (!t->mthp_collapse)
		t->mthp_collapse = has_collapse_counter(dirfd, size_kb);
}

struct number_file {
	const char *path;
	size_t offset;
};

static void read_numbers(int dirfd, const struct number_file *files, size_t n, void *base)
{
	for (size_t i = 0; i < n; i++)
		*(uint64_t *)(void *)((char *)base + files[i].offset) =
			read_number(dirfd, files[i].path);
}

static const struct number_file tree_numbers[] = {
	{ "khugepaged/max_ptes_none", offsetof(struct thp_tree, max_ptes_none) },
	{ "khugepaged/max_ptes_swap", offsetof(struct thp_tree, max_ptes_swap) },
	{ "khugepaged/max_ptes_shared", offsetof(struct thp_tree, max_ptes_shared) },
	{ "khugepaged/pages_to_scan", offsetof(struct thp_tree, pages_to_scan) },
	{ "khugepaged/scan_sleep_millisecs", offsetof(struct thp_tree, scan_sleep_millisecs) },
	{ "khugepaged/alloc_sleep_millisecs", offsetof(struct thp_tree, alloc_sleep_millisecs) },
	{ "khugepaged/defrag", offsetof(struct thp_tree, khugepaged_defrag) },
	{ "khugepaged/full_scans", offsetof(struct thp_tree, full_scans) },
	{ "khugepaged/pages_collapsed", offsetof(struct thp_tree, pages_collapsed) },
	{ "shrink_underused", offsetof(struct thp_tree, shrink_underused) },
};

int thp_tree_read(int dirfd, unsigned page_kb, struct thp_tree *ret)
{
	struct thp_tree t = { .page_kb = page_kb };
	uint64_t sizes[THP_SIZES_MAX];
	unsigned n = list_sizes(dirfd, sizes);

	if (page_kb == 0)
		return -EINVAL;
	if (n == 0 && faccessat(dirfd, "enabled", F_OK, 0) < 0)
		return -ENOENT;
	for (unsigned i = 0; i < n; i++)
		read_size(dirfd, sizes[i], &t);
	if (!read_choice(dirfd, "enabled", &t.enabled))
		not_understood(&t, "enabled");
	if (!read_choice(dirfd, "shmem_enabled", &t.shmem_enabled))
		not_understood(&t, "shmem_enabled");
	if (!read_choice(dirfd, "defrag", &t.defrag))
		not_understood(&t, "defrag");
	read_numbers(dirfd, tree_numbers, ELEMENTSOF(tree_numbers), &t);
	t.pmd_kb = read_pmd_kb(dirfd);
	if (t.pmd_kb <= page_kb && n > 0)
		t.pmd_kb = sizes[n - 1];
	if (t.pmd_kb <= page_kb)
		t.pmd_kb = pmd_kb_of_page(page_kb);
	t.pmd_nr = t.pmd_kb / page_kb;
	*ret = t;
	return 0;
}

static const struct number_file stats_numbers[] = {
	{ "anon_fault_alloc", offsetof(struct thp_stats, anon_fault_alloc) },
	{ "anon_fault_fallback", offsetof(struct thp_stats, anon_fault_fallback) },
	{ "anon_fault_fallback_charge", offsetof(struct thp_stats, anon_fault_fallback_charge) },
	{ "anon_fault_fallback_margin", offsetof(struct thp_stats, anon_fault_fallback_margin) },
	{ "swpin", offsetof(struct thp_stats, swpin) },
	{ "swpin_fallback", offsetof(struct thp_stats, swpin_fallback) },
	{ "swpout", offsetof(struct thp_stats, swpout) },
	{ "swpout_fallback", offsetof(struct thp_stats, swpout_fallback) },
	{ "split", offsetof(struct thp_stats, split) },
	{ "split_failed", offsetof(struct thp_stats, split_failed) },
	{ "split_deferred", offsetof(struct thp_stats, split_deferred) },
	{ "nr_anon", offsetof(struct thp_stats, nr_anon) },
	{ "nr_anon_partially_mapped", offsetof(struct thp_stats, nr_anon_partially_mapped) },
	{ "collapse_alloc", offsetof(struct thp_stats, collapse_alloc) },
};

int thp_stats_read(int dirfd, uint64_t size_kb, struct thp_stats *ret)
{
	char path[THP_PATH_MAX];
	_cleanup_close_ int fd = openat(
		dirfd, thp_size_path(path, size_kb, "stats"), O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOTDIR ? -ENOENT : -errno;
	read_numbers(fd, stats_numbers, ELEMENTSOF(stats_numbers), ret);
	return 0;
}
