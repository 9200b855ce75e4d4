import Signaling

extension Setting {
    static let perch: [Setting] = [
        Setting(
            "perch.ident", \.perch.ident,
            .optional(.word("text without spaces"), empty: "these clients cannot connect"),
            "The ident that PerchRTC's clients send. Together with perch.secret, it lets them join mesh rooms.",
            "It is not the API key. Set both or neither.", applies: .atReload),
        Setting(
            "perch.secret", \.perch.secret,
            .optional(
                .secret("16 to 1024 bytes", where: { (16...1024).contains($0.utf8.count) }),
                empty: "these clients cannot connect"),
            "The secret that PerchRTC's clients send. It is part of their applications, so treat it as public.",
            isSecret: true, applies: .atReload),
        Setting(
            "perch.tokenLifetime", \.perch.tokenLifetime, .duration(.seconds(1) ... .seconds(3600)),
            "How long a PerchRTC client may take to open its WebSocket after it got a token.",
            "Each token works once.", applies: .atReload),
    ]
}
