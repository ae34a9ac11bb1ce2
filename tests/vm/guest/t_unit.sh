#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# t_unit.sh PROGRAM: a unit test that needs more than a build machine may allow.
. /t_lib.sh
"$1" > "/out/$1" 2>&1
echo $? > /out/code
finish
