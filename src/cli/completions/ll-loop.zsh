#compdef ll-loop
# Completion of ll-loop in zsh. Load it with: source <(ll-loop completions zsh), after compinit
_ll-loop() {
    local line
    local -a lines offered
    lines=("${(@f)$(command ll-loop complete-line "$((CURRENT - 1))" "${(@)words}" 2>/dev/null)}")
    for line in "${(@)lines}"; do
        [[ -n $line ]] && offered+=("${line/$'\t'/:}")
    done
    # Where ll-loop offers nothing, zsh offers files.
    if (($#offered)); then
        _describe -V ll-loop offered
    else
        _files
    fi
}
if [[ ${funcstack[1]-} == _ll-loop ]]; then
    _ll-loop "$@"
else
    compdef _ll-loop ll-loop
fi
