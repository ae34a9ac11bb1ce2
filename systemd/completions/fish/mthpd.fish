# SPDX-License-Identifier: LGPL-2.1-or-later
complete -c mthpd -f
complete -c mthpd -l config -r -F -d 'Configuration'
complete -c mthpd -l check-config -d 'Report the faults of the configuration'
complete -c mthpd -l dry-run -d 'Decide and report, write nothing'
complete -c mthpd -l no-bus -d 'Stay away from the message bus'
complete -c mthpd -l restore -d 'Put back what an earlier mthpd changed'
complete -c mthpd -o -restore=exit -d 'The same, if RestoreOnExit was yes'
complete -c mthpd -l replay -r -F -d 'What would have been decided in a trace'
complete -c mthpd -l root -x -a '(__fish_complete_directories)' -d 'Look for /sys and /proc below'
complete -c mthpd -l runtime-dir -x -a '(__fish_complete_directories)' -d 'Socket and start values'
complete -c mthpd -l help -d 'Summary'
complete -c mthpd -l version -d 'Version'
