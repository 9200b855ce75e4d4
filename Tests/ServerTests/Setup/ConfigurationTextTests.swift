import Testing

@testable import Server

/// Single settings are changed in the text of a configuration file, and everything else stays.
@Suite("Changing a configuration file") struct ConfigurationTextTests {
    private func changed(_ text: String, _ changes: ConfigurationText.Change...) -> String {
        var file = ConfigurationText(text)
        for change in changes { file.apply(change) }
        #expect(file.isAsExpected(after: changes, before: ConfigurationText(text)), "\(file.text)")
        return file.text
    }

    private let port = ConfigurationText.Change(key: "port", value: ["443"])
    private let domains = ConfigurationText.Change(key: "acme.domains", value: ["a.example.org"], isList: true)

    @Test("a new value replaces the old one, and comments and other settings stay")
    func replaces() {
        let text = "# Mine\nport: 8080   # for nginx\n\nmedia:\n  port: 50000\n"
        #expect(changed(text, port) == "# Mine\nport: 443   # for nginx\n\nmedia:\n  port: 50000\n")
        #expect(changed("port: \"8080\"\n", port) == "port: 443\n")
        #expect(changed("acme.domains: [b.example.org] # one\n", domains) == "acme.domains: [a.example.org] # one\n")
    }

    @Test("a setting is added to its group, to a new group, or at the end")
    func adds() {
        #expect(changed("", port) == "port: 443\n")
        #expect(changed("host: a\n\n\n", port) == "host: a\nport: 443\n")
        #expect(changed("# Only a comment", domains) == "# Only a comment\n\nacme:\n  domains: [a.example.org]\n")
        #expect(
            changed("acme:\n    email: a@b.c\n# The end\nport: 1\n", domains)
                == "acme:\n    email: a@b.c\n    domains: [a.example.org]\n# The end\nport: 1\n")
        #expect(changed("acme:\nport: 1\n", domains) == "acme:\n  domains: [a.example.org]\nport: 1\n")
    }

    @Test("in the sample, a setting is added below its line")
    func sample() {
        let text = changed(SettingDocuments.sample, port, domains)
        #expect(text.contains("\n#port: 8080\nport: 443\n"))
        #expect(text.contains("\n  #domains: []\n  domains: [a.example.org]\n"))
        #expect(changed(text, .init(key: "port"), .init(key: "acme.domains")) == SettingDocuments.sample)
    }

    @Test("values on several lines are replaced completely")
    func lists() {
        let block = "acme:\n  domains:\n    - b.example.org\n    # Old\n    - c.example.org\n  email: a@b.c\n"
        #expect(changed(block, domains) == "acme:\n    # Old\n  domains: [a.example.org]\n  email: a@b.c\n")
        #expect(changed("acme:\n  domains:\n  - b.example.org\n", domains) == "acme:\n  domains: [a.example.org]\n")
        #expect(
            changed("allowedOrigins: [\n  https://a.example\n]\nport: 1\n", .init(key: "allowedOrigins"))
                == "port: 1\n")
    }

    @Test("values are quoted if YAML would read them differently")
    func quotes() throws {
        for (value, written) in [
            ("::", "\"::\""), ("null", "\"null\""), ("0.0.0.0", "0.0.0.0"), ("a\"b", "\"a\\\"b\""),
        ] {
            var text = ConfigurationText("")
            text.apply(.init(key: "host", value: [value]))
            #expect(text.text == "host: \(written)\n")
            #expect(try ConfigurationFile(yaml: text.text, name: "").values["host"] == .text(value))
        }
    }

    @Test("a carriage return, a quoted number sign and an apostrophe do no harm")
    func oddities() {
        #expect(changed("host: a\r\nport: 1\r\n", .init(key: "host", value: ["b"])).hasSuffix("port: 1\r\n"))
        #expect(
            changed("webDirectory: \"a # b\" # c\n", .init(key: "webDirectory", value: ["/w"]))
                == "webDirectory: /w # c\n")
        #expect(
            changed("webDirectory: Bob's # c\n", .init(key: "webDirectory", value: ["/w"])) == "webDirectory: /w # c\n")
    }

    @Test("a file in another form is detected instead of damaged")
    func otherForms() {
        for text in ["acme: {email: a@b.c}\n", "{port: 1}\n", "port: 1\n---\nhost: a\n"] {
            var file = ConfigurationText(text)
            file.apply(domains)
            #expect(!file.isAsExpected(after: [domains], before: ConfigurationText(text)), "\(file.text)")
        }
    }
}
