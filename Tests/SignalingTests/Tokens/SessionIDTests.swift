import Cluster
@testable import Signaling
import TestSupport
import Testing
import Wire

@Suite struct SessionIDTests {
    private let stage = Stage()
    private let now = Timestamp(milliseconds: 1_790_000_000_000)

    @Test("the IDs of a project begin with its prefixes, and those of other projects do not", arguments: 1...12)
    func prefixes(_ length: Int) throws {
        var generator = SeededGenerator(seed: UInt64(length))
        let key = String(repeating: "7", count: length)
        let prefixes = Project.sessionPrefixes(apiKey: key)
        for (other, isOwn) in [(key, true), (key + "0", false), (key + "7", false), ("1" + key.dropFirst(), false)] {
            let project = try #require(Project(apiKey: other, secret: String(repeating: "s", count: 40)))
            for mode in [MediaMode.relayed, .routed] {
                let session = project.makeSessionID(
                    mediaMode: mode, now: Timestamp(milliseconds: 1), using: &generator)
                #expect(prefixes.contains { session.text.hasPrefix($0) } == isOwn, "\(other)")
            }
        }
    }

    @Test(arguments: MediaMode.allCases) func anIDContainsItsMediaMode(_ mode: MediaMode) {
        let session = stage.project.makeSessionID(mediaMode: mode, now: now, using: &stage.generator)
        #expect(stage.project.mediaMode(of: session) == mode)
        #expect(session.text.hasPrefix(mode == .routed ? "2_" : "1_"))
        #expect(session.text.utf8.count <= Limits.sessionID)
    }

    /// OpenTok's SDKs parse session IDs as a prefix followed by `1~key~~ms~random~~~` in base64url.
    @Test func anIDHasOpenToksFormat() throws {
        let session = stage.room()
        let plain = try #require(Base64URL.decode(session.text.utf8.dropFirst(2)))
        let parts = String(decoding: plain, as: UTF8.self).split(separator: "~", omittingEmptySubsequences: false)
        #expect(parts.count == 8)
        #expect(parts.prefix(4).map(String.init) == ["1", Stage.apiKey, "", "1790000000000"])
        #expect(parts.dropFirst(4).first?.utf8.count == 24)
        #expect(parts.suffix(3) == ["", "", ""])
    }

    /// The expected values were computed with Python's `hmac`, only from the protocol's description.
    @Test func anIDMadeByAnIndependentImplementationVerifies() throws {
        let session = try #require(
            SessionID("1_MX40NTAwMDAwMX5-MTc5MDAwMDAwMDAwMH5BUUlEQkFVR0J3Z0pBTGdWZjF3ekdGZnp-fn4")
        )
        #expect(stage.project.mediaMode(of: session) == .relayed)
    }

    @Test func anIDContainsWhetherItIsRelayedOnly() throws {
        for (mode, only) in [(MediaMode.relayed, true), (.relayed, false), (.routed, false)] {
            let session = stage.room(mode, relayedOnly: only)
            #expect(stage.project.mediaMode(of: session) == mode)
            let token = stage.token(session)
            let grant = try stage.project.verifySessionToken(token, for: session, now: stage.now)
            #expect(grant.isRelayedOnly == only)
        }
        #expect(stage.room(.routed, relayedOnly: true).text.hasPrefix("2_"))
        // The expected value was computed with Python's `hmac`.
        let independent = try #require(
            SessionID("1_MX40NTAwMDAwMX5-MTc5MDAwMDAwMDAwMH5BUUlEQkFVR0J3Z0pBaWdPU011UC1CdlN-fn4")
        )
        let token = stage.token(independent)
        #expect(try stage.project.verifySessionToken(token, for: independent, now: stage.now).isRelayedOnly)
    }

    @Test("an ID contains how the session is always recorded, only if it is routed and not private")
    func automaticArchives() throws {
        for archive in [nil] + CompositionResolution.allCases {
            func traits(_ mode: MediaMode, isPrivate: Bool = false) -> Project.SessionTraits? {
                let session = stage.project.makeSessionID(
                    mediaMode: mode, isPrivate: isPrivate, archive: archive, now: now, using: &stage.generator)
                return stage.project.traits(of: session)
            }
            let routed = try #require(traits(.routed))
            #expect(routed.archive == archive && routed.mediaMode == .routed && !routed.isPrivate)
            #expect(traits(.relayed)?.archive == nil && traits(.relayed)?.isRelayedOnly == false)
            #expect(traits(.routed, isPrivate: true)?.archive == nil)
            #expect(traits(.routed, isPrivate: true)?.isPrivate == true)
        }
        #expect(CompositionResolution(number: 6) == nil && CompositionResolution(number: 7) == nil)
    }

    @Test func anIDContainsItsOrigin() throws {
        let tags = [NodeTag(node: 1, life: 1), NodeTag(node: .max, life: NodeTag.lastLife)]
        for origin in [nil] + tags {
            for mode in MediaMode.allCases {
                let session = stage.project.makeSessionID(
                    mediaMode: mode, origin: origin, now: now, using: &stage.generator)
                let traits = try #require(stage.project.traits(of: session))
                #expect(traits.origin == origin && traits.mediaMode == mode)
                #expect(!traits.isRelayedOnly && !traits.isPrivate && traits.archive == nil)
                #expect(session.text.utf8.count == stage.room(mode).text.utf8.count)
            }
        }
        #expect(stage.project.origin(of: .unset) == nil)
    }

    @Test func idsWithOneOriginAreUnique() {
        let origin = NodeTag(node: 2, life: 7)
        let ids = (0..<500).map { _ in
            stage.project.makeSessionID(mediaMode: .routed, origin: origin, now: now, using: &stage.generator)
        }
        #expect(Set(ids).count == 500)
    }

    @Test func idsThatANodeMakesAtOneTimeDifferEvenWithoutRandomness() {
        struct Zeros: RandomNumberGenerator, Sendable {
            func next() -> UInt64 { 0 }
        }
        let origin = NodeTag(node: 2, life: 7)
        let settings = HubSettings(rules: Rules(), project: Stage.project, tag: origin)
        var context = Context(settings, generator: Zeros())
        context.now = now
        let ids = (0..<500).map { _ in context.makeSessionID(mediaMode: .routed, isPrivate: true) }
        #expect(Set(ids).count == 500)
        #expect(ids.allSatisfy { stage.project.origin(of: $0) == origin && !stage.project.mayBeRecorded($0) })
    }

    @Test func idsAreUnique() {
        #expect(Set((0..<500).map { _ in stage.room() }).count == 500)
    }

    @Test(arguments: MediaMode.allCases) func anyCharacterChangedIsRefused(_ mode: MediaMode) {
        let session = stage.room(mode)
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
        var accepted: [String] = []
        for index in session.text.utf8.indices {
            let at = session.text.utf8.distance(from: session.text.utf8.startIndex, to: index)
            for character in alphabet where character != session.text.utf8[index] {
                var bytes = Array(session.text.utf8)
                bytes[at] = character
                let text = String(decoding: bytes, as: UTF8.self)
                if let other = SessionID(text), stage.project.mediaMode(of: other) != nil { accepted.append(text) }
            }
        }
        #expect(accepted == [])
    }

    @Test func nonCanonicalIDsAreRefused() throws {
        let text = stage.room().text
        let variants = [
            String(text.dropLast()), String(text.dropFirst()), text + "A", text + "AAAA", "1_", "1",
            "2_" + text.dropFirst(2),
            "3_" + text.dropFirst(2), "1_" + Base64URL.encode("1~\(Stage.apiKey)~~1~AAAAAAAAAAAAAAAAAAAAAAAA~~~".utf8),
            "1_" + Base64URL.encode("".utf8), "1_" + Base64URL.encode("~~~~~~~".utf8),
        ]
        for variant in variants {
            let session = try #require(SessionID(variant))
            #expect(stage.project.mediaMode(of: session) == nil, "\(variant)")
        }
        #expect(stage.project.mediaMode(of: .unset) == nil)
    }

    @Test func anIDOfAnotherProjectIsRefused() throws {
        let session = stage.room()
        let other = try #require(Project(apiKey: "45000002", secret: Stage.secret))
        let otherSecret = try #require(Project(apiKey: Stage.apiKey, secret: String(Stage.secret.reversed())))
        #expect(other.mediaMode(of: session) == nil)
        #expect(otherSecret.mediaMode(of: session) == nil)
    }

    @Test func aProjectNeedsANumericKeyAndALongSecret() {
        #expect(Project(apiKey: "", secret: Stage.secret) == nil)
        #expect(Project(apiKey: "45x", secret: Stage.secret) == nil)
        #expect(Project(apiKey: "٤٥", secret: Stage.secret) == nil)
        #expect(Project(apiKey: String(repeating: "1", count: 33), secret: Stage.secret) == nil)
        #expect(Project(apiKey: "1", secret: String(repeating: "s", count: 31)) == nil)
        #expect(Project(apiKey: "1", secret: String(repeating: "s", count: 32)) != nil)
    }
}
