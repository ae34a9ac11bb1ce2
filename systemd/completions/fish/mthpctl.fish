# SPDX-License-Identifier: LGPL-2.1-or-later
set -l verbs status top explain history features verify check-config reload hold release restore record replay plot metrics

function __mthpctl_cgroups
    set -l token (commandline -ct)
    for d in /sys/fs/cgroup/$token*/
        string replace /sys/fs/cgroup/ '' $d
    end
end

complete -c mthpctl -f
complete -c mthpctl -l socket -r -F -d 'Where mthpd listens'
complete -c mthpctl -l json -d 'Print the answer as JSON'
complete -c mthpctl -l help -d 'Summary'
complete -c mthpctl -l version -d 'Version'

set -l none "not __fish_seen_subcommand_from $verbs"
complete -c mthpctl -n $none -a status -d 'State, sizes and the worst groups'
complete -c mthpctl -n $none -a top -d 'The same, live'
complete -c mthpctl -n $none -a explain -d 'Why the current settings stand'
complete -c mthpctl -n $none -a history -d 'The last decisions'
complete -c mthpctl -n $none -a features -d 'What the kernel offers'
complete -c mthpctl -n $none -a verify -d 'Differences between wanted and actual values'
complete -c mthpctl -n $none -a check-config -d 'Faults of the configuration'
complete -c mthpctl -n $none -a reload -d 'Read the configuration again'
complete -c mthpctl -n $none -a hold -d 'Freeze all switches, over a restart too'
complete -c mthpctl -n $none -a release -d 'End that hold'
complete -c mthpctl -n $none -a restore -d 'Put the start values back, and hold'
complete -c mthpctl -n $none -a record -d 'What the loop sees and decides, into a file'
complete -c mthpctl -n $none -a replay -d 'What a policy would have decided'
complete -c mthpctl -n $none -a plot -d 'Pressure, sizes and decisions as a picture'
complete -c mthpctl -n $none -a metrics -d 'Everything in the text format of Prometheus'

complete -c mthpctl -n '__fish_seen_subcommand_from status top history' -s n -x -d 'How many'
complete -c mthpctl -n '__fish_seen_subcommand_from explain' -l pid -x -a '(__fish_complete_pids)' -d 'The group of this process'
complete -c mthpctl -n '__fish_seen_subcommand_from explain' -a '(__mthpctl_cgroups)'
complete -c mthpctl -n '__fish_seen_subcommand_from check-config replay plot' -F
complete -c mthpctl -n '__fish_seen_subcommand_from record plot' -s o -r -F -d 'The file to write'
complete -c mthpctl -n '__fish_seen_subcommand_from record' -l duration -x -d 'How long'
complete -c mthpctl -n '__fish_seen_subcommand_from record' -l max-size -x -d 'How large it may become'
complete -c mthpctl -n '__fish_seen_subcommand_from record' -l anonymize -d 'Replace names'
complete -c mthpctl -n '__fish_seen_subcommand_from replay' -l config -r -F -d 'Configuration to try'
