# Completion of ll-loop in bash. Load it with: source <(ll-loop completions bash)
_ll_loop() {
    local value words=("${COMP_WORDS[@]}")
    words[COMP_CWORD]=$2
    COMPREPLY=()
    while IFS=$'\t' read -r value _; do
        COMPREPLY+=("$value")
    done < <(command ll-loop complete-line "$COMP_CWORD" "${words[@]}" 2>/dev/null)
}
# Where ll-loop offers nothing, bash offers files.
complete -o default -F _ll_loop ll-loop
