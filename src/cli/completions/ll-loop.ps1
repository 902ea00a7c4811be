# Completion of ll-loop in PowerShell. Load it with: ll-loop completions powershell | Out-String | Invoke-Expression
Register-ArgumentCompleter -Native -CommandName 'll-loop' -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)

    # Only the text of the words, which nothing evaluates.
    $words = @($commandAst.CommandElements |
            Where-Object { $_.Extent.StartOffset -lt $cursorPosition } |
            ForEach-Object { $_.Extent.Text })
    $at = if ($wordToComplete -eq '') { $words.Count } else { $words.Count - 1 }
    # Where ll-loop offers nothing, PowerShell offers files.
    & ll-loop complete-line $at @words 2>$null | ForEach-Object {
        $value, $help = $_ -split "`t", 2
        if (-not $help) { $help = $value }
        [System.Management.Automation.CompletionResult]::new($value, $value, 'ParameterValue', $help)
    }
}
