import Signaling
import Wire

extension Setting {
    static let samples: [Setting] = [
        Setting(
            "moderation.program", \.moderation.program, .list(of: .path),
            "The path of a program, and its arguments, that judges samples of the cameras in video chats of the roulette.",
            "Off by default. It reads a question per line and writes a verdict per line: docs/moderation.md has the format. The rules "
                + "that people agree to mention the samples while it is on."),
        Setting(
            "moderation.url", \.moderation.url,
            .optional(
                .word("an http:// or https:// URL", where: { (try? WebhookURL($0)) != nil }), empty: "no endpoint"),
            "The URL of an HTTP endpoint that judges samples, instead of a program.",
            "It may be on this machine or a private network. Samples are sent unencrypted if it begins with http://."),
        Setting(
            "moderation.token", \.moderation.token,
            .optional(
                .secret(
                    "16 to 256 characters without spaces",
                    where: { text in
                        (16...256).contains(text.utf8.count) && text.utf8.allSatisfy { (0x21...0x7e).contains($0) }
                    }),
                empty: "no token"),
            "The bearer token that the server sends to moderation.url.", isSecret: true),
        Setting(
            "moderation.interval", \.rules.sampleInterval, .duration(.seconds(1) ... .seconds(600)),
            "The time between two samples of a camera.",
            "A sample has 8 to 20 KiB. With 1,000 people in chats and 10 s, 100 samples arrive per second."),
        Setting(
            "moderation.timeout", \.moderation.timeout, .duration(.milliseconds(50) ... .seconds(60)),
            "How long to wait for a verdict.",
            "Without a verdict the chat continues. A program that does not answer in time is started again."),
        Setting(
            "moderation.maxWaiting", \.moderation.maxWaitingSamples, .integer(1...10_000),
            "Maximum samples that wait for the program. Another one replaces the oldest."),
    ]
}
