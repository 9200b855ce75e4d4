import Foundation
import Signaling
import Testing

@testable import Server

@Suite struct ConfigurationTests {
    private func load(
        _ overrides: [String: String] = [:], environment: [String: String] = [:], yaml: String? = nil
    ) throws -> ConfabConfiguration {
        try ConfabConfiguration.load(overrides: overrides, environment: environment, yaml: yaml, named: "confab.yaml")
    }

    private func problems(
        _ overrides: [String: String] = [:], environment: [String: String] = [:], yaml: String? = nil
    ) -> [String] {
        do {
            _ = try load(overrides, environment: environment, yaml: yaml)
            return []
        } catch let error as ConfigurationError {
            return error.problems.map(\.description)
        } catch {
            return ["unexpected: \(error)"]
        }
    }

    @Test func defaultsApplyWithoutInput() throws {
        #expect(try load() == ConfabConfiguration())
        #expect(
            try load(environment: ["PATH": "/bin", "CONFAB_BUILD": "x"], yaml: "# nothing\n") == ConfabConfiguration())
        #expect(try load(yaml: "roulette:\ntls:\n") == ConfabConfiguration())
    }

    @Test func flagsOverrideVariablesWhichOverrideTheFile() throws {
        let yaml = "port: 1\nhost: a.example\nmedia:\n  port: 2\nroulette:\n  interestWait: 1s\n"
        let environment = ["CONFAB_PORT": "3", "CONFAB_MEDIA_PORT": "4", "CONFAB_ROULETTE_INTEREST_WAIT": "250ms"]
        let configuration = try load(["port": "5"], environment: environment, yaml: yaml)
        #expect(configuration.port == 5)
        #expect(configuration.media.port == 4)
        #expect(configuration.host == "a.example")
        #expect(configuration.rules.interestWait == .milliseconds(250))
    }

    @Test func everyKeyCanBeSetByAVariableAndByAFlag() throws {
        for setting in Setting.all where !setting.key.defaultText.isEmpty {
            let text = setting.key.defaultText
            #expect(
                try load(environment: [setting.key.environmentName: text]) == ConfabConfiguration(),
                "\(setting.key.name)")
            #expect(try load([setting.key.name: text]) == ConfabConfiguration(), "\(setting.key.name)")
            #expect(!problems(environment: [setting.key.environmentName: "\u{1}"]).isEmpty, "\(setting.key.name)")
        }
        #expect(ConfabConfiguration.keys.first { $0.name == "publicURL" }?.environmentName == "CONFAB_PUBLIC_URL")
    }

    @Test func listsAreSequencesOrCommaSeparatedText() throws {
        let inFile = try load(yaml: "trustedProxies:\n  - 10.0.0.0/8\n  - ::1\nallowedOrigins: [https://A.example/]\n")
        #expect(inFile.trustedProxies.blocks.map(\.description) == ["10.0.0.0/8", "::1/128"])
        #expect(inFile.allowedOrigins == ["https://a.example"])
        let variables = ["CONFAB_TRUSTED_PROXIES": "10.0.0.0/8, ::1", "CONFAB_ALLOWED_ORIGINS": "https://a.example"]
        #expect(try load(environment: variables) == inFile)
        #expect(try load(["trustedProxies": "10.0.0.0/8,::1", "allowedOrigins": "https://a.example"]) == inFile)
        #expect(try load(["trustedProxies": ""], yaml: "trustedProxies: [10.0.0.0/8]") == ConfabConfiguration())
    }

    @Test func whitespaceAroundValuesIsIgnored() throws {
        let plain = try load(["dataDirectory": "/srv/a, b", "allowedOrigins": "https://a.example"])
        let environment = ["CONFAB_DATA_DIRECTORY": " /srv/a, b\t", "CONFAB_ALLOWED_ORIGINS": " https://a.example , "]
        #expect(try load(environment: environment) == plain)
        #expect(try load(["dataDirectory": " /srv/a, b ", "allowedOrigins": "https://a.example ,"]) == plain)
        #expect(try load(yaml: "dataDirectory: ' /srv/a, b '\nallowedOrigins: [' https://a.example ']") == plain)
    }

    @Test func aSecretOfSpacesIsRejectedInsteadOfUnset() {
        let spaces = String(repeating: " ", count: 48)
        #expect(problems(environment: ["CONFAB_API_SECRET": spaces]).count == 1)
        #expect(problems(["apiSecret": spaces]).count == 1)
        #expect(problems(yaml: "apiSecret: '\(spaces)'").count == 1)
    }

    @Test func anEmptyValueUnsetsAnOptionalKey() throws {
        #expect(try load(environment: ["CONFAB_PUBLIC_URL": ""], yaml: "publicURL: https://x.example").publicURL == nil)
        #expect(try load(yaml: "publicURL: ~\n").publicURL == nil)
        #expect(problems(yaml: "port:\n").count == 1)
    }

    @Test("there is a media loop for every two processors, unless the number is set")
    func mediaLoops() throws {
        let automatic = try load().media
        #expect(automatic.loops == nil)
        #expect([1, 2, 3, 4, 7, 16, 500].map(automatic.loopCount(processors:)) == [1, 1, 1, 2, 3, 8, 64])
        let four = try load(yaml: "media:\n  loops: 4\n").media
        #expect([1, 2, 64].map(four.loopCount(processors:)) == [4, 4, 4])
        #expect(try load(environment: ["CONFAB_MEDIA_LOOPS": ""], yaml: "media:\n  loops: 4\n").media.loops == nil)
        for text in ["0", "65", "-1", "two"] { #expect(problems(["media.loops": text]).count == 1, "\(text)") }
    }

    @Test("a bitrate has a decimal unit")
    func bitrates() throws {
        for (text, bits) in [("100kbit/s", 100_000), ("2500kbit/s", 2_500_000), ("40Mbit/s", 40_000_000)] {
            let configuration = try load(yaml: "media:\n  sessionBitrate: \(text)\n  totalBitrate: 1Gbit/s\n")
            #expect(configuration.media.sessionBitrate == Bitrate(bitsPerSecond: bits))
            #expect(configuration.media.sessionBitrate?.description == text)
            #expect(configuration.media.totalBitrate?.bitsPerSecond == 1_000_000_000)
        }
        #expect(try load(yaml: "media:\n  sessionBitrate: ~\n").media.sessionBitrate == nil)
        for text in ["5", "99kbit/s", "5MBit/s", "5 Mbit/s", "0Mbit/s", "99999999999999999Gbit/s", "2000Gbit/s"] {
            #expect(problems(["media.totalBitrate": text]).count == 1, "\(text)")
        }
    }

    @Test func errorsForUnknownKeysSuggestTheMostSimilarKey() {
        #expect(
            ConfabConfiguration.warnings(about: ["CONFAB_PROT": "1", "CONFAB_PORT": "1", "PATH": "/bin"]) == [
                "CONFAB_PROT: in the environment: unknown key; did you mean CONFAB_PORT?"
            ])
        #expect(
            problems(yaml: "roulete:\n  interestWait: 1s\n") == [
                "roulete.interestWait: in confab.yaml: unknown key; did you mean roulette.interestWait?"
            ])
        #expect(problems(yaml: "roulette:\n  interestwait: 1s\n")[0].contains("did you mean roulette.interestWait?"))
        #expect(problems(["prot": "1"])[0].contains("on the command line"))
    }

    @Test func errorsForInvalidValuesNameTheKeyTheSourceAndTheExpectedFormat() {
        #expect(
            problems(environment: ["CONFAB_ROULETTE_INTEREST_WAIT": "5"]) == [
                "roulette.interestWait: \"5\" in CONFAB_ROULETTE_INTEREST_WAIT: is invalid; "
                    + "expected a whole number and a unit (ms, s, m, h or d), from 0s to 24h"
            ])
        #expect(problems(["port": "70000"])[0].contains("\"70000\" on the command line"))
        #expect(
            problems(yaml: "log:\n  format: xml\n")[0].contains(
                "\"xml\" in confab.yaml: is invalid; expected one of text, json"))
    }

    @Test func allProblemsAreReportedAtOnce() {
        let found = problems(
            ["port": "x"], environment: ["CONFAB_HOTS": "1", "CONFAB_LAN": "maybe"],
            yaml: "a: 1\nlimits: 3\nport: [1]\n")
        #expect(found.count == 5, "\(found)")
    }

    @Test(arguments: [
        "port: [1, 2]", "port: {a: 1}", "limits: 3", "port: 1\nport: 2", "- 1", "port", "a: b: c",
        "media.port: 1\nmedia:\n  port: 2", "? [a]\n: b",
    ])
    func malformedFilesAreRejected(yaml: String) {
        #expect(!problems(yaml: yaml).isEmpty)
    }

    @Test func aMissingFileIsAnError() {
        #expect(throws: ConfigurationError.self) { try ConfabConfiguration.load(file: "/nonexistent/confab.yaml") }
    }

    @Test(arguments: [
        "tls:\n  certificate: a.pem", "ice:\n  turnUsername: a", "ice:\n  turnServers: [turn:t.example]",
        "ice:\n  turnSecret: s\n  turnUsername: u\n  turnPassword: p", "metrics:\n  port: 8080",
        "admin:\n  port: 8080", "admin:\n  port: 9464",
        "roulette:\n  firstSkipWait: 61s",
    ])
    func conflictingValuesAreRejected(yaml: String) {
        #expect(problems(yaml: yaml).count == 1)
    }

    @Test(arguments: [
        ("publicURL", "https://Chat.Example.org:8443/a/", "https://chat.example.org:8443/a"),
        ("publicURL", "http://[::1]:80", "http://[::1]:80"),
        ("publicURL", "https://Example.org/Some-1/v_i.d~eo//", "https://example.org/Some-1/v_i.d~eo"),
        ("host", "[::1]", "::1"),
        ("ice.stunServers", "stun:s.example:3478", "stun:s.example:3478"),
        ("media.address", "::ffff:192.0.2.1", "192.0.2.1"),
        ("limits.messageSize", "131072B", "128KiB"), ("roulette.reportRetention", "720h", "30d"),
        ("connection.resumeGrace", "1500ms", "1500ms"),
        ("connection.resumeGrace", "1s", "1s"), ("metrics.enabled", "true", "true"),
        ("roulette.mediaMode", "routed", "routed"),
    ])
    func valuesAreNormalized(key: String, given: String, written: String) throws {
        let configuration = try load([key: given])
        let setting = try #require(Setting.all.first { $0.key.name == key })
        #expect(setting.text(configuration) == written)
        #expect(try load([key: written]) == configuration)
    }

    @Test(arguments: [
        ("publicURL", "ftp://x"), ("publicURL", "https://u@x"), ("publicURL", "https://x/?q"),
        ("publicURL", "https://"), ("publicURL", "https://x:99999"), ("publicURL", "https://x/#f"),
        ("publicURL", "https://x/?"), ("publicURL", "https://x/a/../b"), ("publicURL", "https://x/."),
        ("publicURL", "https://x//a"), ("publicURL", "https://x/a//b"), ("publicURL", "https://x/%76"),
        ("publicURL", "https://x/%zz"), ("publicURL", "https://x/a;b"), ("publicURL", "https://x/a:b"),
        ("publicURL", "https://x/room/y"), ("publicURL", "https://u:p@x/video"), ("publicURL", "x.example/video"),
        ("allowedOrigins", "https://x/path"), ("allowedOrigins", "*"), ("trustedProxies", "10.0.0.1/8"),
        ("ice.stunServers", "turn:x"),
        ("ice.stunServers", "stun:"), ("ice.stunServers", "stun://x"), ("media.address", "host"),
        ("limits.messageSize", "64"), ("limits.messageSize", "1GiB"),
        ("limits.messageSize", "99999999999999999999KiB"), ("roulette.interestWait", "-1s"),
        ("roulette.interestWait", "1.5s"), ("roulette.interestWait", "s"),
        ("roulette.interestWait", "999999999999999999d"), ("connection.pingInterval", "0s"), ("host", "a b"),
        ("host", ""), ("apiKey", "abc"), ("apiKey", "123"),
        ("apiSecret", "short"), ("apiSecret", "0123456789 0123456789 0123456789"),
        ("apiSecret", "0123456789012345678901234567.env"),
        ("port", "+-1"), ("port", "8080.0"), ("dataDirectory", ""),
    ])
    func invalidValuesAreRejected(key: String, value: String) {
        #expect(problems([key: value]).count == 1)
    }

    @Test func secretsAppearNeitherInDescriptionsNorInErrors() throws {
        let secret = String(repeating: "s3", count: 20)
        let configuration = try load([
            "apiSecret": secret, "ice.turnSecret": secret, "apiKey": "12345678", "ice.turnServers": "turn:t.example",
        ])
        #expect(configuration.apiSecret?.revealed == secret)
        var dumped = ""
        dump(configuration, to: &dumped)
        for text in [configuration.description, "\(configuration)", String(reflecting: configuration), dumped] {
            #expect(!text.contains(secret))
        }
        #expect(configuration.description.contains("apiSecret: [redacted]"))
        #expect(problems(["apiSecret": "hunter2 "]).allSatisfy { !$0.contains("hunter2") })
    }

    @Test func metricsAreEnabledAutomaticallyOnlyOnLoopback() throws {
        #expect(ConfabConfiguration().metrics.isEnabled)
        #expect(try !load(["metrics.host": "0.0.0.0"]).metrics.isEnabled)
        #expect(try load(["metrics.host": "0.0.0.0", "metrics.enabled": "true"]).metrics.isEnabled)
    }

    @Test func theSampleFileListsAllKeysWithTheirDefaults() throws {
        #expect(try load(yaml: SettingDocuments.sample) == ConfabConfiguration())
        let setting = /^ *#(\w+):/.anchorsMatchLineEndings()
        let names = SettingDocuments.sample.matches(of: setting).map(\.output.1)
        #expect(names == ConfabConfiguration.keys.map { $0.name.split(separator: ".").last ?? "" })
        let uncommented = SettingDocuments.sample.replacing(setting) { $0.output.0.replacing("#", with: "") }
        #expect(try load(yaml: uncommented) == ConfabConfiguration())
    }

    @Test func theSampleFileAndTheRowsInThePageOfLimitsAreWrittenFromTheSettings() throws {
        let root = URL(filePath: #filePath).resolvingSymlinksInPath().appending(path: "../../..").standardized
        let sample = try String(contentsOf: root.appending(path: "deploy/confab.sample.yaml"), encoding: .utf8)
        #expect(sample == SettingDocuments.sample, "run scripts/settings")
        let page = try String(contentsOf: root.appending(path: "docs/limits.md"), encoding: .utf8)
        #expect(page == SettingDocuments.limits(page), "run scripts/settings")
        let messages = Rules().messages
        #expect(page.contains("(`Rules.messages`) | \(Int(messages.perSecond))/s, \(Int(messages.burst)) |"))
    }
}

@Suite struct ProjectFileTests {
    /// A temporary directory that is removed when this value is released.
    private final class Directory {
        let path = NSTemporaryDirectory() + "/confab-test-" + UUID().uuidString
        deinit { try? FileManager.default.removeItem(atPath: path) }
    }

    private func configuration(_ directory: Directory) -> ConfabConfiguration {
        var configuration = ConfabConfiguration()
        configuration.dataDirectory = directory.path + "/deep/data"
        return configuration
    }

    private func mode(_ path: String) throws -> Int {
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        return try #require(attributes[.posixPermissions] as? NSNumber).intValue
    }

    @Test func theFirstStartCreatesAProjectThatLaterStartsRead() throws {
        let directory = Directory()
        let configuration = configuration(directory)
        let made = try ProjectFile.open(configuration)
        #expect(made.apiKey.wholeMatch(of: /[1-9][0-9]{7}/) != nil)
        #expect(made.apiSecret.revealed.wholeMatch(of: /[0-9a-f]{48}/) != nil)
        #expect(try ProjectFile.open(configuration) == made)
        #expect(try mode(configuration.dataDirectory) == 0o700)
        #expect(try mode(configuration.dataDirectory + "/project.json") == 0o600)
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: configuration.dataDirectory).sorted()
                == ["project.json", "server.key"])
        #expect(!"\(made)".contains(made.apiSecret.revealed))
    }

    @Test func concurrentFirstStartsAgreeOnOneProject() async throws {
        let directory = Directory()
        let configuration = configuration(directory)
        let made = try await withThrowingTaskGroup(of: ProjectFile.self) { group in
            for _ in 0..<16 { group.addTask { try ProjectFile.open(configuration) } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(Set(made.map(\.apiSecret)).count == 1)
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: configuration.dataDirectory).sorted()
                == ["project.json", "server.key"])
    }

    @Test func theConfigurationOverridesTheFile() throws {
        let directory = Directory()
        var configuration = configuration(directory)
        configuration.apiKey = "12345678"
        configuration.apiSecret = SecretText(String(repeating: "a", count: 32))
        #expect(try ProjectFile.open(configuration).apiKey == "12345678")
        #expect(!FileManager.default.fileExists(atPath: configuration.dataDirectory))
        configuration.apiSecret = nil
        let mixed = try ProjectFile.open(configuration)
        #expect(mixed.apiKey == "12345678")
        #expect(mixed.apiSecret.revealed.count == 48)
    }

    @Test func aFileThatOtherUsersCanReadCausesAWarning() throws {
        let directory = Directory()
        let configuration = configuration(directory)
        #expect(try ProjectFile.open(configuration).warnings.isEmpty)
        let path = configuration.dataDirectory + "/project.json"
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path)
        #expect(try ProjectFile.open(configuration).warnings.count == 1)
    }

    @Test(arguments: [
        "", "{", "[]", "{}", #"{"apiKey":"12345678"}"#,
        #"{"apiKey":"x","apiSecret":"0123456789abcdef0123456789abcdef"}"#,
        #"{"apiKey":"12345678","apiSecret":"short"}"#,
        #"{"apiKey":12345678,"apiSecret":"0123456789abcdef0123456789abcdef"}"#,
    ])
    func aDamagedFileIsRejectedAndNotChanged(contents: String) throws {
        let directory = Directory()
        let configuration = configuration(directory)
        try FileManager.default.createDirectory(atPath: configuration.dataDirectory, withIntermediateDirectories: true)
        let path = configuration.dataDirectory + "/project.json"
        try contents.write(toFile: path, atomically: false, encoding: .utf8)
        let error = try #require(throws: DataDirectoryError.self) { try ProjectFile.open(configuration) }
        #expect(error.description.contains(path))
        #expect(try String(contentsOfFile: path, encoding: .utf8) == contents)
    }

    @Test func aDirectoryThatCannotBeCreatedIsAnError() throws {
        let directory = Directory()
        try "a file".write(toFile: directory.path, atomically: false, encoding: .utf8)
        var configuration = ConfabConfiguration()
        configuration.dataDirectory = directory.path + "/data"
        let error = try #require(throws: DataDirectoryError.self) { try ProjectFile.open(configuration) }
        #expect(error.description.contains("Cannot create the directory"))
    }
}
