# Completion of ll-loop in fish. Load it with: ll-loop completions fish | source
function __ll_loop_complete
    set -l words (commandline -opc)
    set -l offered (command ll-loop complete-line (count $words) $words (commandline -ct) 2>/dev/null)
    # Where ll-loop offers nothing, fish offers files.
    if set -q offered[1]
        printf '%s\n' $offered
    else
        __fish_complete_path (commandline -ct)
    end
end
complete --command ll-loop --no-files --keep-order --arguments '(__ll_loop_complete)'
