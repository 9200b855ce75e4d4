import TestSupport
import Testing
import Wire

@testable import Signaling

/// The tokens of `session` were made with the vendor's SDKs for Python: `opentok` 3.15.0 (T1 and JWT) and `vonage-video` 1.6.1
/// (RS256).
@Suite("Session tokens of OpenTok's SDKs") struct VendorTokenTests {
    private static let session = SessionID(
        "2_MX40NTAwMDAwMX5-MTc5NTg0MDAzMjAwNX4tb2pWUnNQRWJYckhBZVFyN1dNV3lUZXZ-fn4")!
    private static let t1 =
        "T1==cGFydG5lcl9pZD00NTAwMDAwMSZzaWc9YTc1NTRmOGNkN2ZlOGM2YzQyY2ZlOWQ5NzA2YzZiNGRhZTUyZTk3NDpzZXNz"
        + "aW9uX2lkPTJfTVg0ME5UQXdNREF3TVg1LU1UYzVOVGcwTURBek1qQXdOWDR0YjJwV1VuTlFSV0pZY2toQlpWRnlOMWROVjNs"
        + "VVpYWi1mbjQmY3JlYXRlX3RpbWU9MTc5MDAwMDAwMCZleHBpcmVfdGltZT0xNzkwMDAzNjAwJnJvbGU9bW9kZXJhdG9yJm5v"
        + "bmNlPTIyMjg1OSZpbml0aWFsX2xheW91dF9jbGFzc19saXN0PWZvY3VzK3NtYWxsJmNvbm5lY3Rpb25fZGF0YT1uYW1lJTNE"
        + "QWRhK0wlQzMlQjZ3JTI2eCUzRDElMkIx"
    private static let jwt =
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzZXNzaW9uX2lkIjoiMl9NWDQwTlRBd01EQXdNWDUtTVRjNU5UZzBNREF"
        + "6TWpBd05YNHRiMnBXVW5OUVJXSllja2hCWlZGeU4xZE5WM2xVWlhaLWZuNCIsInJvbGUiOiJwdWJsaXNoZXJvbmx5IiwiaWF"
        + "0IjoxNzkwMDAwMDAwLCJleHAiOjE3OTAwMDM2MDAsInNjb3BlIjoic2Vzc2lvbi5jb25uZWN0IiwiaW5pdGlhbF9sYXlvdXR"
        + "fY2xhc3NfbGlzdCI6ImZvY3VzIHNtYWxsIiwiY29ubmVjdGlvbl9kYXRhIjoibmFtZT1BZGEgTFx1MDBmNncmeD0xKzEiLCJ"
        + "pc3MiOiI0NTAwMDAwMSIsImlzdCI6InByb2plY3QiLCJub25jZSI6MzczODk2fQ.XJX5O4U8n81lGn6UBfSj3qjIQ2H_RV6r"
        + "i7EqttiEkcE"
    private static let rs256 =
        "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9.eyJzZXNzaW9uX2lkIjoiMl9NWDQwTlRBd01EQXdNWDUtTVRjNU5UZzBNREF"
        + "6TWpBd05YNHRiMnBXVW5OUVJXSllja2hCWlZGeU4xZE5WM2xVWlhaLWZuNCIsInJvbGUiOiJtb2RlcmF0b3IiLCJjb25uZWN"
        + "0aW9uX2RhdGEiOiJuYW1lPUFkYSIsImluaXRpYWxfbGF5b3V0X2NsYXNzX2xpc3QiOlsiZm9jdXMiLCJzbWFsbCJdLCJleHA"
        + "iOjE3OTU4NDEwMTQsImp0aSI6IjUyZTY0YWIzLTU0YTItNDAyNi04NzIyLTMxZTg5MjQ3ZTVkZSIsImlhdCI6MTc5NTg0MDE"
        + "xNCwic3ViamVjdCI6InZpZGVvIiwic2NvcGUiOiJzZXNzaW9uLmNvbm5lY3QiLCJhY2wiOnsicGF0aHMiOnsiL3Nlc3Npb24"
        + "vKioiOnt9fX0sImFwcGxpY2F0aW9uX2lkIjoiMDAwMDAwMDAtMDAwMC00MDAwLTgwMDAtMDAwMDAwMDAwMDAxIn0.AoCjVOR"
        + "RWrQC1XIa1dtny4q8jQtGpvh5PONCtIilR7x-"
        + "jKYBIYQOhZCp6KEw9pL9zf6PEkVxC_KxDan3hcMmUWyYhn7Az_p5QjeVV7q3HPAYTxR9gY7zy7Yjzyk3ylm8rHdYRhq4VGXy"
        + "_lKGDpxIta9LFCjXdWnhqFOZzS4mpkiCd2In9FRwxZZ9HyvqpthZIrm0arxKb8I5nSr1v5696zazE7_HbAGSyJQm0TioUZ3o"
        + "7ZtO2AOt7xW_xRCvh5dxNUi12EeItvNBApadBxoPM7kwtOWuc5HsduIUR8E1fEdp70U2IAKQALLlYxiUQbrOh8qdkxY9zgCc"
        + "sHrfeDzqQA"
    private static let publicKey = """
        -----BEGIN PUBLIC KEY-----
        MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAzyC2UVa24rE8xh8poU3L
        f13m0GNaj+yK2rO3JB1XNFK+wvZiTyfNwVb2q3MeS/9Ph05tnl1V1ZnsJp9SbTgP
        C+hUBZUynYXNAd4nI2JBNiqlT5RfVfAjlQ7HN0EDnuCvoUvEvynjPm90zhHQo+fN
        S7MBoG1IDPnCf+0N9Hc0+jJZ35XljBlP9bEbPjLL+d2bK48QoqAlhku5d/XtN/iW
        wbw6xqoY/7wctAK4qX1dBwDRDhJ5+7kFRcjc1CD90wCmda/f0xML/h5G/IcK6pFO
        yFAhO+exSrCkbdQN8uVWCeD3rX2pjBp6BiUBfWIW6oa8s5wreU1vikMgcUxOq36D
        owIDAQAB
        -----END PUBLIC KEY-----
        """
    private static let application = "00000000-0000-4000-8000-000000000001"
    private static let now = Timestamp(milliseconds: 1_790_000_000_000)
    private static let later = Timestamp(milliseconds: 1_795_840_214_000)

    private func projects(
        application: Project.Application? = nil, secret: String = Stage.secret, previous: String? = nil
    ) throws -> Projects {
        let key = try #require(ServerKey(bytes: Array(Stage.secret.utf8)))
        let before = previous.map { Project.PreviousSecret(secret: $0, acceptedUntil: Self.now + .seconds(60)) }
        var project = try #require(
            Project(apiKey: Stage.apiKey, secret: secret, serverKey: key, previous: before))
        project.application = application
        return Projects(main: project)
    }

    private func outcome(_ token: String, _ projects: Projects, at now: Timestamp = Self.now) -> String {
        do {
            let grant = try projects.verifySessionToken(token, for: Self.session, now: now)
            return "\(grant.role.rawValue) \(grant.data) \(grant.layoutClasses.joined(separator: ","))"
        } catch { return error.code.rawValue }
    }

    @Test("a T1 token and both kinds of JWT grant what they say")
    func accepted() throws {
        let application = try #require(Project.Application(id: Self.application, publicKey: Self.publicKey))
        let projects = try projects(application: application)
        #expect(outcome(Self.t1, projects) == "moderator name=Ada Löw&x=1+1 focus,small")
        #expect(outcome(Self.jwt, projects) == "publisheronly name=Ada Löw&x=1+1 focus,small")
        #expect(outcome(Self.rs256, projects, at: Self.later) == "moderator name=Ada focus,small")
    }

    @Test("a token with any character changed is refused")
    func changed() throws {
        let application = try #require(Project.Application(id: Self.application, publicKey: Self.publicKey))
        let projects = try projects(application: application)
        for (token, now) in [(Self.t1, Self.now), (Self.jwt, Self.now), (Self.rs256, Self.later)] {
            var accepted: [Int] = []
            for index in token.indices {
                var changed = token
                changed.replaceSubrange(index...index, with: token[index] == "A" ? "B" : "A")
                guard changed != token else { continue }
                let outcome = outcome(changed, projects, at: now)
                if !outcome.hasPrefix("token_") { accepted.append(token.distance(from: token.startIndex, to: index)) }
            }
            #expect(accepted == [], "changed characters of \(token.prefix(8))")
        }
    }

    @Test("all kinds expire, and are refused before they are valid")
    func dates() throws {
        let application = try #require(Project.Application(id: Self.application, publicKey: Self.publicKey))
        let projects = try projects(application: application)
        for (token, first, last) in [
            (Self.t1, 1_790_000_000, 1_790_003_600), (Self.jwt, 1_790_000_000, 1_790_003_600),
            (Self.rs256, 1795840114, 1795841014),
        ] {
            let outcomes = [first - 61, first - 60, last - 1, last].map {
                outcome(token, projects, at: Timestamp(milliseconds: Int64($0) * 1000)).prefix(12)
            }
            #expect(outcomes[0] == "token_not_ye")
            #expect(!outcomes[1].hasPrefix("token_") && !outcomes[2].hasPrefix("token_"))
            #expect(outcomes[3] == "token_expire")
        }
    }

    @Test("a replaced secret is accepted until the overlap ends, for T1 too")
    func rotation() throws {
        let rotated = try projects(secret: String(repeating: "z", count: 40), previous: Stage.secret)
        #expect(outcome(Self.t1, rotated).hasPrefix("moderator"))
        #expect(outcome(Self.t1, rotated, at: Self.now + .seconds(60)) == "token_signature")
        #expect(outcome(Self.t1, try projects(secret: String(repeating: "z", count: 40))) == "token_signature")
    }

    @Test("RS256 needs the application's own public key, and the key is never used as a secret")
    func keys() throws {
        let other = try #require(Project.Application(id: "another", publicKey: Self.publicKey))
        #expect(outcome(Self.rs256, try projects(), at: Self.later) == "token_malformed")
        #expect(outcome(Self.rs256, try projects(application: other), at: Self.later) == "token_project")
        let application = try #require(Project.Application(id: Self.application, publicKey: Self.publicKey))
        let claims = Forge.sessionClaims(
            Self.session, at: Self.now, ["application_id": "\"\(Self.application)\""])
        let confused = Forge.token(claims, secret: Self.publicKey)
        #expect(outcome(confused, try projects(application: application)) == "token_signature")
        let relabeled = Forge.token(claims, header: #"{"alg":"RS256","typ":"JWT"}"#)
        #expect(outcome(relabeled, try projects(application: application)) == "token_signature")
        #expect(Project.Application(id: "a", publicKey: "-----BEGIN PUBLIC KEY-----\nAAAA") == nil)
    }

    // MARK: T1 tokens that a program with the secret could make

    private static func signed(_ fields: String, key: String = Stage.apiKey, secret: String = Stage.secret) -> String {
        t1Token(fields, key: key, secret: secret)
    }

    private static let fields =
        "session_id=\(session)&create_time=1790000000&expire_time=1790003600&role=publisher&nonce=0.5"

    /// Fields that the secret's holder signed, and the outcome.
    private static let cases: [(String, String)] = [
        (fields, "publisher  "), (with("role", "god"), "token_role"), (with("role", nil), "publisher  "),
        (with("role", "MODERATOR"), "moderator  "), (with("role", ""), "token_role"),
        (with("role", "%ff"), "token_malformed"), (fields + "&connection_data=%ff", "token_malformed"),
        (with("expire_time", ""), "token_malformed"),
        (with("expire_time", "1790000000"), "token_expired"), (with("expire_time", "1792592061"), "token_lifetime"),
        (with("expire_time", "1e12"), "token_malformed"),
        (with("expire_time", "99999999999999999999"), "token_malformed"),
        (with("create_time", nil), "token_malformed"), (with("create_time", "-1"), "token_malformed"),
        (with("create_time", "1790000061"), "token_not_yet"), (with("session_id", nil), "token_session"),
        (fields + "&connection_data=" + String(repeating: "d", count: 1001), "token_malformed"),
        (fields + "&initial_layout_class_list=" + String(repeating: "d", count: 1001), "token_malformed"),
        ("", "token_malformed"),
    ]

    /// Returns the fields with another value for one of them, or without it if `value` is nil.
    private static func with(_ name: String, _ value: String?) -> String {
        let kept = fields.split(separator: "&").filter { !$0.hasPrefix(name + "=") }.map(String.init)
        return (kept + [value.map { "\(name)=\($0)" }].compactMap(\.self)).joined(separator: "&")
    }

    /// The fields that the SDKs for PHP, .NET and Ruby sign if their caller sets no time of expiry.
    private static let unlimited: [(String, String)] = [
        (
            "session_id=\(session)&create_time=1790000000&role=publisher&nonce=1790000000.12341804289383"
                + "&initial_layout_class_list=", "publisher  "
        ),
        (
            "session_id=\(session)&create_time=1790000000&nonce=512345&role=PUBLISHER"
                + "&initial_layout_class_list=focus small", "publisher  focus,small"
        ),
        (
            "role=moderator&session_id=\(session)&create_time=1790000000&nonce=0.8437&connection_data=name%3DAda",
            "moderator name=Ada "
        ),
    ]

    @Test("a T1 token that names no time of expiry is valid for a day", arguments: unlimited)
    func withoutExpiry(_ fields: String, _ expected: String) throws {
        let (token, projects) = (Self.signed(fields), try projects())
        #expect(outcome(token, projects) == expected)
        #expect(outcome(token, projects, at: Self.now + .seconds(86_399)) == expected)
        #expect(outcome(token, projects, at: Self.now + .seconds(86_400)) == "token_expired")
    }

    @Test(
        "connection data that is not text is refused",
        arguments: [
            ("5", "token_malformed"), ("true", "token_malformed"), ("[\"x\"]", "token_malformed"),
            ("{\"a\":1}", "token_malformed"), ("null", "publisher  "), ("\"x\"", "publisher x "),
        ])
    func connectionData(_ value: String, _ expected: String) throws {
        let claims = Forge.sessionClaims(Self.session, at: Self.now, ["connection_data": value])
        #expect(outcome(Forge.token(claims), try projects()) == expected)
    }

    // MARK: Tokens of servers

    /// Returns the code of the error that `verify` throws; nil if it throws none.
    private func refusal(_ verify: () throws(WireError) -> Void) -> WireError.Code? {
        do {
            try verify()
            return nil
        } catch { return error.code }
    }

    @Test("the private key of an application signs requests of its server, but nothing for operators, users and rooms")
    func applicationKey() throws {
        let key = try ApplicationKey()
        let application = try #require(Project.Application(id: Self.application, publicKey: key.publicKey))
        let (project, now) = (try projects(application: application).main, Self.now)
        func token(_ more: String) throws -> String {
            try key.token(
                #"{"application_id":"\#(Self.application)","iat":1790000000,"jti":"x","exp":1790000060\#(more)}"#)
        }
        let request = try token("")
        #expect(refusal { () throws(WireError) in try project.verifyApplicationToken(request, now: now) } == nil)
        #expect(
            refusal { () throws(WireError) in try project.verifyRequestToken(request, now: now) } == .tokenScope)
        for more in [#","sub":"ada""#, #","acl":{"paths":{"/*/users/**":{}}}"#, #","sub":"ada","acl":{}"#] {
            let token = try token(more)
            #expect(
                refusal { () throws(WireError) in try project.verifyApplicationToken(token, now: now) } == .tokenScope,
                "\(more)")
        }
        let user = try token(#","scope":"user.connect","sub":"ada""#)
        #expect(refusal { () throws(WireError) in _ = try project.verifyUserToken(user, now: now) } == .tokenScope)
        let room = try token(
            #","scope":"room.join","role":"host","room":"Tea","room_id":"\#(RoomID(high: 1, low: 1))""#)
        #expect(refusal { () throws(WireError) in _ = try project.verifyRoomToken(room, now: now) } == .tokenScope)
    }

    @Test("the SDK for Ruby writes ist into the header of its requests' tokens")
    func requestsOfRuby() throws {
        let project = try projects().main
        func outcome(_ claim: String, _ header: String) -> WireError.Code? {
            let claims = #"{"iss":"\#(Stage.apiKey)","iat":1790000000,"exp":1790000300\#(claim)}"#
            let token = Forge.token(claims, header: #"{"alg":"HS256"\#(header)}"#)
            return refusal { () throws(WireError) in try project.verifyApplicationToken(token, now: Self.now) }
        }
        #expect(outcome("", #","ist":"project""#) == nil)
        #expect(outcome("", "") == .tokenScope)
        #expect(outcome("", #","ist":"account""#) == .tokenScope)
        #expect(outcome(#","ist":"account""#, #","ist":"project""#) == .tokenScope)
    }

    @Test("if two projects have the same application, it is the main one's")
    func sameApplication() throws {
        let application = try #require(Project.Application(id: Self.application, publicKey: Self.publicKey))
        var other = try #require(Project(apiKey: "45000002", secret: Stage.secret))
        other.application = application
        let main = try projects(application: application).main
        #expect(Projects(main: main, others: [other]).project(named: Self.application)?.apiKey == main.apiKey)
    }

    @Test("a signed T1 token with wrong fields is refused", arguments: cases)
    func signedFields(_ fields: String, _ expected: String) throws {
        #expect(outcome(Self.signed(fields), try projects()) == expected)
    }

    @Test(
        "a malformed T1 token is refused",
        arguments: [
            "T1==", "T1==A", "T1==!!!!", "T1==cGFydG5lcl9pZD0x", "T1==" + String(repeating: "A", count: 9000),
            "T1== " + t1.dropFirst(4), t1 + "=", "t1==" + t1.dropFirst(4), "T1=" + t1.dropFirst(4),
        ])
    func malformed(_ token: String) throws {
        #expect(outcome(token, try projects()) == "token_malformed")
    }

    @Test("a T1 token of another key or secret is refused")
    func others() throws {
        #expect(outcome(Self.signed(Self.fields, key: "45000002"), try projects()) == "token_project")
        #expect(
            outcome(Self.signed(Self.fields, secret: String(repeating: "x", count: 40)), try projects())
                == "token_signature")
    }
}
