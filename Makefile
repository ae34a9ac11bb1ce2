# SPDX-License-Identifier: LGPL-2.1-or-later
# mthpd: build, tests, installation. `make help` lists the targets.

VERSION := 0.1
PREFIX ?= /usr
DESTDIR ?=
BUILD ?= build
CC := gcc
CLANG ?= clang
PKG_CONFIG ?= pkg-config
ifneq ($(V),1)
Q := @
endif

PKGS := libevent_core libevent_extra inih libsystemd libcgroup jansson
MISSING = $(error a compiler or a library is missing: tests/install-deps build, as root, installs them)
PKG_CFLAGS = $(or $(shell command -v $(CC) > /dev/null && $(PKG_CONFIG) --cflags $(PKGS) && echo -pthread),$(MISSING))
PKG_LIBS = $(shell $(PKG_CONFIG) --libs $(PKGS) 2>/dev/null) -lpthread -lm
CMOCKA_LIBS = $(shell $(PKG_CONFIG) --libs cmocka 2>/dev/null)

WARN := -Wall -Wextra -Wshadow -Wconversion -Wformat=2 -Wvla
HARDEN := -O2 -g -fstack-protector-strong -D_FORTIFY_SOURCE=2 -fPIE
LDHARDEN := -pie -Wl,-z,relro,-z,now
ifeq ($(SANITIZE),1)
BUILD := build/sanitize
HARDEN := -O1 -g -fsanitize=address,undefined -fno-omit-frame-pointer -fno-sanitize-recover=undefined
LDHARDEN := -fsanitize=address,undefined
endif
ifneq ($(RELEASE),1)
WARN += -Werror
endif
CPPFLAGS += -D_GNU_SOURCE -DMTHPD_VERSION='"$(VERSION)"' -Ilib -Idaemon
CFLAGS += -std=gnu11 $(WARN) $(HARDEN)

LIB_SRC := $(wildcard lib/*.c)
CTL_SRC := $(wildcard daemon/mthpctl.c daemon/ctl-*.c)
DAEMON_SRC := $(filter-out daemon/main.c $(CTL_SRC),$(wildcard daemon/*.c))
LIB_OBJ := $(LIB_SRC:%.c=$(BUILD)/%.o)
CTL_OBJ := $(CTL_SRC:%.c=$(BUILD)/%.o)
DAEMON_OBJ := $(DAEMON_SRC:%.c=$(BUILD)/%.o)
UNIT_SRC := $(wildcard tests/unit/test_*.c)
UNIT_BIN := $(UNIT_SRC:tests/unit/%.c=$(BUILD)/unit/%)
SIM_SRC := $(wildcard tests/sim/*.c)
FUZZ_SRC := $(wildcard tests/fuzz/fuzz_*.c)
FUZZ_BIN := $(FUZZ_SRC:tests/fuzz/%.c=$(BUILD)/fuzz/%)

.PHONY: all help deps run demo check check-quick check-long fuzz fuzz-seeds lint lint-tree unit sim trace surface \
	integration vm service kernel pergroup install uninstall deb clean
.DELETE_ON_ERROR:
.SECONDARY:

all: $(BUILD)/mthpd $(BUILD)/mthpctl

help:
	@sed -n 's/^## //p' $(MAKEFILE_LIST)

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CC      $<"
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(PKG_CFLAGS) -MMD -MP -c $< -o $@

$(BUILD)/libmthp.a: $(LIB_OBJ)
	$(Q)rm -f $@
	$(Q)ar rcs $@ $^

$(BUILD)/mthpd: $(BUILD)/daemon/main.o $(DAEMON_OBJ) $(BUILD)/libmthp.a
	@echo "  LD      $@"
	$(Q)$(CC) $(LDHARDEN) $^ -o $@ $(PKG_LIBS)

$(BUILD)/mthpctl: $(CTL_OBJ) $(BUILD)/libmthp.a
	@echo "  LD      $@"
	$(Q)$(CC) $(LDHARDEN) $^ -o $@ $(PKG_LIBS)

$(BUILD)/unit/%: tests/unit/%.c $(DAEMON_OBJ) $(filter-out $(BUILD)/daemon/mthpctl.o,$(CTL_OBJ)) $(BUILD)/libmthp.a
	@mkdir -p $(@D)
	@echo "  CC      $@"
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(PKG_CFLAGS) -MMD -MP $(LDHARDEN) $< $(filter %.o %.a,$^) -o $@ $(CMOCKA_LIBS) $(PKG_LIBS)

$(BUILD)/sim/sim: $(SIM_SRC) $(wildcard tests/sim/*.h lib/*.h) $(BUILD)/libmthp.a
	@mkdir -p $(@D)
	@echo "  CC      $@"
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(LDHARDEN) $(SIM_SRC) $(BUILD)/libmthp.a -o $@ $(PKG_LIBS)

$(BUILD)/errno-shim.so: tests/fixtures/errno-shim.c tests/fixtures/errno-shim.h
	@mkdir -p $(@D)
	@echo "  CC      $@"
	$(Q)$(CC) $(CPPFLAGS) -std=gnu11 $(WARN) -O2 -g -fPIC -shared $< -o $@ -ldl

FUZZ_FLAGS := -std=gnu11 -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined
FUZZ_OBJ := $(LIB_SRC:%.c=$(BUILD)/fuzz/obj/%.o) $(DAEMON_SRC:%.c=$(BUILD)/fuzz/obj/%.o)

$(BUILD)/fuzz/obj/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CLANG   $<"
	$(Q)$(CLANG) $(CPPFLAGS) $(FUZZ_FLAGS) -fsanitize=fuzzer-no-link $(PKG_CFLAGS) -MMD -MP -c $< -o $@

$(BUILD)/fuzz/%: tests/fuzz/%.c $(FUZZ_OBJ)
	@mkdir -p $(@D)
	@echo "  CLANG   $@"
	$(Q)$(CLANG) $(CPPFLAGS) $(FUZZ_FLAGS) -fsanitize=fuzzer $(PKG_CFLAGS) $^ -o $@ $(PKG_LIBS)

## all           build/mthpd and build/mthpctl
## check-quick   unit tests, simulations, integration tests, lint of the tree; under 60 s
QUICK := unit sim integration trace surface lint-tree
check-quick: all $(UNIT_BIN) $(BUILD)/sim/sim $(BUILD)/errno-shim.so
	+@$(MAKE) --no-print-directory -j4 -Otarget $(QUICK)
	@echo "check-quick: passed$$([ ! -s $(BUILD)/not-run ] || sed '1s/^/, without (a tool is missing): /' $(BUILD)/not-run)"

# Here a test whose tool is not installed fails.
## check         check-quick, sanitizers, fuzz seeds, static analysis, and the tests in guests: on the stock kernel, of
##               the service, and on the patched kernel (built if it is not there)
check: export MTHPD_ALL_TOOLS := 1
check: check-quick
	+$(MAKE) --no-print-directory SANITIZE=1 unit sim
	+$(MAKE) --no-print-directory fuzz-seeds lint vm service kernel pergroup

## check-long    check with all seeds, longer fuzzing
check-long: check
	tests/vm/run-tests --long
	tests/vm/run-tests --set=pergroup --long
	tests/vm/kernel/run --long
	+$(MAKE) --no-print-directory fuzz FUZZ_SECONDS=120

unit: $(UNIT_BIN) $(BUILD)/errno-shim.so
	@tests/run-unit $(UNIT_BIN)

sim: $(BUILD)/sim/sim
	$(BUILD)/sim/sim --all

integration: all $(BUILD)/errno-shim.so
	python3 tests/integration/run $(BUILD)

trace: all $(BUILD)/errno-shim.so
	python3 tests/trace/run $(BUILD)

surface: all $(BUILD)/errno-shim.so
	python3 tests/surface/run $(BUILD)

vm: all $(BUILD)/unit/test_watch_limits
	tests/vm/run-tests

## service       the package and the service under a real systemd, in guests
service: all
	tests/vm/systemd/run

## kernel        builds the patched kernel (cached) and runs the tests of the series
kernel:
	tests/vm/kernel/run

## pergroup      mthpd on the patched kernel: each group its own folio size
pergroup: all
	tests/vm/run-tests --set=pergroup

## fuzz          every fuzz target for FUZZ_SECONDS (30) each
FUZZ_SECONDS ?= 30
fuzz: $(FUZZ_BIN)
	@tests/run-fuzz $(FUZZ_SECONDS) $(FUZZ_BIN)

fuzz-seeds: $(FUZZ_BIN)
	@tests/run-fuzz seeds $(FUZZ_BIN)

## lint          clang-tidy and cppcheck, and lint-tree
lint: lint-tree
	@tests/lint-code $(CPPFLAGS) $(PKG_CFLAGS)

lint-tree:
	@tests/lint-tree

## deps          install what the build and the tests need (Debian 12 or newer, root)
deps:
	tests/install-deps build

# What root builds stays with the owner of the checkout, who goes on as a user.
GIVE_BACK = [ "$$(id -u)" -ne 0 ] || chown -hR --reference=Makefile $(BUILD)
ALWAYS_GIVE_BACK = trap '$(GIVE_BACK)' EXIT; trap 'exit 130' INT; trap 'exit 143' TERM
define build_here
+@$(ALWAYS_GIVE_BACK); $(MAKE) --no-print-directory -j$$(nproc) all
endef

## run           build what is missing and run mthpd here, in the foreground; Ctrl-C puts everything back
run:
	@[ "$$(id -u)" -eq 0 ] || { echo "mthpd changes settings of this machine and needs root: sudo make run" >&2; exit 1; }
	@tests/install-deps run
	$(build_here)
	$(BUILD)/mthpd

## demo          watch mthpd at work on a stock kernel in a guest, against static settings
demo:
	@tests/install-deps demo
	$(build_here)
	@$(ALWAYS_GIVE_BACK); tests/demo

## install       into DESTDIR/PREFIX (/usr), the unit into UNITDIR
UNITDIR ?= $(PREFIX)/lib/systemd/system
SHARE = $(DESTDIR)$(PREFIX)/share
INSTALL_DATA = install -D -m 644
# FILE:DIRECTORY, for install and uninstall alike; /etc is apart.
DATA_FILES = \
	$(addsuffix :$(SHARE)/mthpd/profiles,$(wildcard conf/profiles/*.conf)) \
	$(addsuffix :$(DESTDIR)$(PREFIX)/lib/systemd/catalog,systemd/mthpd.catalog) \
	$(addsuffix :$(SHARE)/dbus-1/system.d,systemd/dbus/org.mthpd1.conf) \
	$(addsuffix :$(SHARE)/dbus-1/system-services,systemd/dbus/org.mthpd1.service) \
	$(addsuffix :$(SHARE)/doc/mthpd/examples,$(wildcard systemd/examples/*.conf)) \
	$(addsuffix :$(SHARE)/bash-completion/completions,$(wildcard systemd/completions/bash/*)) \
	$(addsuffix :$(SHARE)/fish/vendor_completions.d,$(wildcard systemd/completions/fish/*)) \
	$(addsuffix :$(SHARE)/zsh/vendor-completions,$(wildcard systemd/completions/zsh/*)) \
	$(foreach s,1 5 8,$(addsuffix :$(SHARE)/man/man$s,$(wildcard daemon/man/*.$s)))
# Makefiles and blanks in names do not go together; half an installation is worse than none.
no-blanks = $(foreach v,DESTDIR PREFIX UNITDIR,$(if $(word 2,$($v)),$(error $v has a blank in it: "$($v)")))
install: all
	$(no-blanks)install -D -m 755 $(BUILD)/mthpd $(DESTDIR)$(PREFIX)/sbin/mthpd
	install -D -m 755 $(BUILD)/mthpctl $(DESTDIR)$(PREFIX)/bin/mthpctl
	$(INSTALL_DATA) systemd/mthpd.service $(DESTDIR)$(UNITDIR)/mthpd.service
	sed -i -e 's#=/usr/\(s\?bin\)/#=$(PREFIX)/\1/#' $(DESTDIR)$(UNITDIR)/mthpd.service
	$(Q)set -e; for f in $(DATA_FILES); do \
		$(INSTALL_DATA) $${f%%:*} $${f#*:}/$$(basename $${f%%:*}); done
	[ -e $(DESTDIR)/etc/mthpd/mthpd.conf ] || \
		$(INSTALL_DATA) conf/mthpd.conf $(DESTDIR)/etc/mthpd/mthpd.conf
	install -d $(DESTDIR)/etc/mthpd/mthpd.conf.d

## uninstall     what install put there, except a changed /etc/mthpd
uninstall:
	$(no-blanks)rm -f $(DESTDIR)$(PREFIX)/sbin/mthpd $(DESTDIR)$(PREFIX)/bin/mthpctl \
		$(DESTDIR)$(UNITDIR)/mthpd.service
	$(Q)for f in $(DATA_FILES); do rm -f $${f#*:}/$$(basename $${f%%:*}); done
	rmdir $(SHARE)/mthpd/profiles $(SHARE)/mthpd $(SHARE)/doc/mthpd/examples $(SHARE)/doc/mthpd 2> /dev/null || :
	cmp -s conf/mthpd.conf $(DESTDIR)/etc/mthpd/mthpd.conf && rm -f $(DESTDIR)/etc/mthpd/mthpd.conf || :
	rmdir $(DESTDIR)/etc/mthpd/mthpd.conf.d $(DESTDIR)/etc/mthpd 2> /dev/null || :

## deb           build/deb/mthpd_VERSION_ARCH.deb; needs debhelper
deb:
	systemd/packaging/make-deb $(VERSION) $(BUILD)/deb

clean:
	rm -rf build

-include $(FUZZ_OBJ:.o=.d) $(LIB_OBJ:.o=.d) $(DAEMON_OBJ:.o=.d) $(CTL_OBJ:.o=.d) $(BUILD)/daemon/main.d $(UNIT_BIN:=.d)
