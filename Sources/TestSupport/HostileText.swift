/// Strings that the server, a terminal, a browser or a database could misinterpret.
public enum HostileText {
    /// Strings of at most 256 bytes. The server may relay them, but only unchanged.
    public static let short = [
        "../../../../etc/passwd", "..\\..\\project.json", "/etc/passwd", "C:\\nul", "a/b\u{0}.txt", "\u{0}", "con", ".",
        "",
        "\u{202E}gnp.exe", "\u{2066}right\u{2069}", "\u{200F}\u{200E}", "А\u{200B}dmin", "Аdmіn", "ａｄｍｉｎ", "\u{FEFF}x",
        "a\r\nSet-Cookie: x=1", "a\nb", "\u{85}\u{2028}\u{2029}", "\u{1B}[2J\u{1B}[31mred\u{1B}]0;title\u{7}",
        "\u{8}\u{8}\u{7F}",
        "<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "javascript:alert(1)", "</textarea><!--",
        "&lt;b&gt;",
        "' OR 1=1; DROP TABLE reports; --", "${jndi:ldap://127.0.0.1/x}", "{{7*7}}", "%s%n%x", "$(reboot)`reboot`",
        "--help",
        "*3\r\n$3\r\nSET\r\n", "\u{1F468}\u{200D}\u{1F469}\u{200D}\u{1F467}",
        "e" + String(repeating: "\u{301}", count: 100),
        "\u{10FFFF}\u{FFFE}\u{FFFF}\u{E000}", "\\u0000\\n\\", "null", "undefined", "__proto__", "constructor", "\"",
        "\u{FFFD}",
        String(repeating: "n", count: 256), String(repeating: "\u{1F600}", count: 64),
    ]

    /// Strings that are too long for any name or id.
    public static let long = [
        String(repeating: "n", count: 257), String(repeating: "n", count: 10_000),
        String(repeating: "\u{1F600}", count: 65),
        String(repeating: "../", count: 3_000),
    ]
}
