import Foundation
import Signaling
import TestSupport
import Testing
import Wire

extension Person {
    fileprivate static func member(_ name: String, _ server: ServerProcess) throws -> (Person, RoomFileAccess) {
        let person = try arrive(port: server.port)
        let answer = try person.ask(.room(.join(.init(name: RoomName(name), displayName: "A"))))
        guard case .room(.joined(let joined)) = answer, let files = joined.files else {
            throw TimedOut("not let in: \(answer)")
        }
        return (person, files)
    }

    fileprivate func announce(size: Int) throws -> RoomNotice.Upload {
        let answer = try ask(.room(.file(.init(name: "a.txt", size: size))))
        guard case .room(.upload(let upload)) = answer else { throw TimedOut("no upload: \(answer)") }
        return upload
    }

    /// Sends a file of these bytes.
    fileprivate func send(_ bytes: [UInt8], _ server: ServerProcess) throws -> RoomNotice.Upload {
        let upload = try announce(size: bytes.count)
        let answer = try server.put(upload, bytes)
        guard answer.status == 204 else { throw TimedOut("not stored: \(answer)") }
        return upload
    }
}

extension ServerProcess {
    fileprivate func put(_ upload: RoomNotice.Upload, _ bytes: [UInt8]) throws -> HTTPResponse {
        let headers = [("Authorization", "Bearer \(upload.secret)")]
        return try RawSocket(port: port).ask(upload.path, method: "PUT", headers: headers, body: bytes)
    }

    fileprivate func get(_ path: String, _ key: RoomFileKey) throws -> HTTPResponse {
        try RawSocket(port: port).ask(path, headers: [("Authorization", "Bearer \(key)")])
    }

    /// Sends only the head of an upload.
    fileprivate func begin(_ upload: RoomNotice.Upload, _ framing: String) throws -> RawSocket {
        let socket = try RawSocket(port: port)
        let head = "PUT \(upload.path) HTTP/1.1\r\nHost: confab.test\r\nAuthorization: Bearer \(upload.secret)\r\n"
        try socket.send("\(head)\(framing)\r\n\r\n")
        return socket
    }

    /// The names of the stored files.
    fileprivate var storedFiles: [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: dataDirectory + "/files")) ?? []
    }

    fileprivate func expectFiles(_ count: Int) throws {
        try eventually("\(storedFiles.count) files are stored instead of \(count)") { storedFiles.count == count }
    }
}

extension Hostile {
    @Suite("Case 28: files in rooms") struct RoomFileAttacks {
        private static let settings = [
            "CONFAB_LIMITS_HANDSHAKE_BURST": "100000", "CONFAB_LIMITS_REQUESTS_PER_SECOND": "10000",
            "CONFAB_LIMITS_REQUEST_BURST": "10000", "CONFAB_ROOMS_MESSAGES_PER_SECOND": "10000",
            "CONFAB_ROOMS_MESSAGE_BURST": "10000", "CONFAB_ROOMS_FILES_PER_ROOM": "1000",
            "CONFAB_LIMITS_REQUEST_HEADER_TIMEOUT": "1s", "CONFAB_ROOMS_UPLOAD_TIME": "5s",
            "CONFAB_ROOMS_EMPTY_GRACE": "10ms",
        ]

        @Test("a file's name never reaches a path or a header, and arrives unchanged or is refused")
        func names() async throws {
            try await Attack(number: 28, name: "names of files", settings: Self.settings).run { server in
                let (ann, _) = try Person.member("Tea", server)
                let (bob, files) = try Person.member("Tea", server)
                let texts =
                    HostileText.short + HostileText.long + [
                        "a\u{202E}fdp.exe", "..", "...", ".bashrc", "a.", "COM1", "a;b", "a\"; filename=b",
                        "%0d%0aX: y",
                        String(repeating: "n", count: 200), String(repeating: "n", count: 201),
                    ]
                var tally = Tally()
                for text in texts {
                    let answer = try ann.ask(.room(.file(.init(name: text, size: 1))))
                    tally.count(answer.verdict)
                    guard case .room(.upload(let upload)) = answer else {
                        #expect(answer.verdict == "invalid_name", "\(text.debugDescription.prefix(80))")
                        continue
                    }
                    #expect(try server.put(upload, [0x61]).status == 204)
                    let line = try bob.hear("room.said") { if case .room(.said(let line)) = $0 { line } else { nil } }
                    #expect(Array(line.text.utf8) == Array(text.utf8))
                    #expect(!text.contains("/") && !text.contains("\\") && !text.contains("\""))
                    let download = try server.get("\(files.path)/\(upload.id)", files.key)
                    let disposition = try #require(download["Content-Disposition"])
                    #expect(disposition.utf8.allSatisfy { (0x20...0x7E).contains($0) })
                    #expect(disposition.hasPrefix("attachment; filename=\"download\"; filename*=UTF-8''"))
                    #expect(disposition.count { $0 == ";" } == 2 && disposition.count { $0 == "\"" } == 2)
                }
                #expect(tally["room.upload"] > 0 && tally["invalid_name"] > 0, "\(tally.text)")
                #expect(server.storedFiles.allSatisfy { RoomFileID($0) != nil }, "\(server.storedFiles)")
                return AttackOutcome(sent: "\(tally.total) names", cameBack: tally.text)
            }
        }

        @Test("a size that lies is refused, and nothing of the file stays")
        func sizes() async throws {
            try await Attack(number: 28, name: "sizes that lie", settings: Self.settings).run { server in
                let (ann, files) = try Person.member("Tea", server)
                var tally = Tally()
                for size in [0, -1, Int.min, Int.max, 1 << 40, files.maxSize + 1] {
                    let verdict = try ann.verdict("room.file", members: #""name":"a","size":\#(size)"#)
                    tally.count(verdict)
                    #expect(["malformed", "message_too_large"].contains(verdict), "\(size)")
                }
                let part = [UInt8](repeating: 0x78, count: 1 << 20)
                let chunk = Array("100000\r\n".utf8) + part + Array("\r\n".utf8)
                let lies: [(framing: String, bytes: [UInt8], statuses: Set<Int>)] = [
                    ("Content-Length: 9", part, [400]), ("Content-Length: 11", part, [400]),
                    ("Content-Length: \(16 << 20)", part, [400]), ("Content-Length: \(1 << 40)", part, [413]),
                    ("Content-Length: 0", [], [400]), ("Transfer-Encoding: chunked", chunk, [400]),
                    ("Transfer-Encoding: chunked", Array("5\r\nhello\r\n0\r\n\r\n".utf8), [400]),
                ]
                for lie in lies {
                    let upload = try ann.announce(size: 10)
                    let socket = try server.begin(upload, lie.framing)
                    var taken = 0
                    for _ in 0..<64 where !lie.bytes.isEmpty {
                        let count = socket.sendWhatGoes(lie.bytes, within: .seconds(2))
                        taken += count
                        if count < lie.bytes.count || lie.bytes.count < 1 << 20 { break }
                    }
                    let status = (try? socket.readAnswer().status) ?? 0
                    tally.count("\(status)")
                    // A client that continues to send may only see the reset.
                    let isReset = status == 0 && taken > 0 && socket.isClosedByPeer(within: .seconds(10))
                    #expect(lie.statuses.contains(status) || isReset, "\(lie.framing): \(status)")
                    if lie.statuses == [413] {
                        // The router never saw it, so the upload can still begin.
                        #expect(try server.put(upload, [UInt8](repeating: 0x78, count: 10)).status == 204)
                    }
                }
                try server.expectFiles(1)
                return AttackOutcome(sent: "\(lies.count) lies, 6 sizes", cameBack: tally.text)
            }
        }

        @Test("an upload without its secret is answered at once, and the connection closes before the file was sent")
        func strangers() async throws {
            try await Attack(number: 28, name: "uploads of strangers", settings: Self.settings).run { server in
                let (ann, files) = try Person.member("Tea", server)
                let part = [UInt8](repeating: 0x78, count: 1 << 20)
                var endings = Tally()
                for number in 0..<6 {
                    var upload = try ann.announce(size: files.maxSize)
                    upload.secret = number.isMultiple(of: 2) ? files.key : RoomFileKey(high: 1, low: UInt64(number))
                    let socket = try server.begin(upload, "Content-Length: \(files.maxSize)")
                    let status = try socket.readAnswer().status
                    #expect(status == 404)
                    endings.count("\(status)")
                    while socket.sendWhatGoes(part, within: .milliseconds(100)) == part.count {}
                    #expect(socket.isClosedByPeer(within: .seconds(10)))
                    // Gives the reserved space back.
                    #expect(try ann.verdict(.room(.removeFile(.init(id: upload.id)))) == "ok")
                }
                try server.expectFiles(0)
                return AttackOutcome(sent: "6 uploads without their secret", cameBack: endings.text)
            }
        }

        @Test("a client that waits before it sends a file may send it only if it has the secret")
        func waiting() async throws {
            try await Attack(number: 28, name: "uploads that wait", settings: Self.settings).run { server in
                let (ann, files) = try Person.member("Tea", server)
                let framing = "Content-Length: 3\r\nExpect: 100-continue"
                var upload = try ann.announce(size: 3)
                let owner = try server.begin(upload, framing)
                let reported = String(decoding: try owner.receive(until: Array("\r\n\r\n".utf8)), as: UTF8.self)
                #expect(reported.hasPrefix("HTTP/1.1 100 "), "\(reported)")
                try owner.send("tea")
                #expect(try owner.readAnswer().status == 204)
                upload = try ann.announce(size: 3)
                upload.secret = files.key
                let stranger = try server.begin(upload, framing)
                #expect(try stranger.readAnswer().status == 404)
                return AttackOutcome(sent: "2 uploads that wait", cameBack: "100, 204 and 404")
            }
        }

        @Test("uploads byte by byte are cut off, and give their space back")
        func slow() async throws {
            try await Attack(number: 28, name: "uploads byte by byte", settings: Self.settings).run { server in
                let (ann, _) = try Person.member("Tea", server)
                let sockets = try (0..<3).map { _ in
                    try server.begin(ann.announce(size: 100_000), "Content-Length: 100000")
                }
                #expect(try ann.verdict(.room(.file(.init(name: "a", size: 1)))) == "rate_limited")
                let deadline = ContinuousClock.now + .seconds(30)
                var (open, sent) = (sockets, 0)
                while !open.isEmpty, ContinuousClock.now < deadline {
                    let next = ContinuousClock.now + .milliseconds(50)
                    for socket in open { sent += socket.sendWhatGoes([0x78], within: .zero) }
                    open = Tally.open(of: open, until: next)
                }
                #expect(open.isEmpty, "\(open.count) of 3 are still open")
                try server.expectFiles(0)
                _ = try ann.send([0x78], server)
                return AttackOutcome(sent: "3 uploads, \(sent) bytes", cameBack: "\(3 - open.count) cut off")
            }
        }

        @Test("thousands of uploads that are begun and dropped leave nothing behind")
        func begun() async throws {
            try await Attack(number: 28, name: "uploads begun and dropped", settings: Self.settings).run { server in
                let before = server.descriptors
                let people = try (0..<10).map { _ in try Person.member("Tea", server).0 }
                var tally = Tally()
                for _ in 0..<300 {
                    for person in people {
                        let answer = try person.ask(.room(.file(.init(name: "a", size: 1 << 20))))
                        tally.count(answer.verdict)
                        person.forget()
                        guard case .room(.upload(let upload)) = answer else { continue }
                        let socket = try server.begin(upload, "Content-Length: \(1 << 20)")
                        socket.sendWhatGoes([0x78], within: .zero)
                        if tally.total.isMultiple(of: 3) { socket.reset() } else { socket.close() }
                    }
                }
                #expect(tally["room.upload"] + tally["rate_limited"] + tally["storage_full"] == 3000, "\(tally.text)")
                #expect(tally["room.upload"] > 30, "\(tally.text)")
                for person in people { person.drop() }
                try server.expectFiles(0)
                try eventually("the server holds \(server.descriptors) descriptors, \(before) before") {
                    server.descriptors < before + 20
                }
                return AttackOutcome(sent: "\(tally.total) uploads", cameBack: tally.text)
            }
        }

        @Test("an upload ends when its sender leaves, and when the room closes")
        func ended() async throws {
            try await Attack(number: 28, name: "uploads to nobody", settings: Self.settings).run { server in
                let half = [UInt8](repeating: 0x78, count: 1 << 19)
                var tally = Tally()
                for hasOthers in [true, false] {
                    let (ann, _) = try Person.member("Tea \(hasOthers)", server)
                    let bob = try hasOthers ? Person.member("Tea \(hasOthers)", server).0 : nil
                    let upload = try ann.announce(size: 1 << 20)
                    let socket = try server.begin(upload, "Content-Length: \(1 << 20)")
                    try socket.send(half)
                    try server.expectFiles(1)
                    #expect(try ann.verdict(.room(.leave)) == "ok")
                    try server.expectFiles(0)
                    socket.sendWhatGoes(half, within: .seconds(2))
                    let status = try socket.readAnswer().status
                    tally.count("\(status)")
                    #expect(status == 404)
                    try server.expectFiles(0)
                    if let bob {
                        #expect(try bob.verdict(.room(.leave)) == "ok")
                        #expect(!bob.heard.contains { if case .room(.said) = $0 { true } else { false } })
                    }
                }
                return AttackOutcome(sent: "2 halves of files", cameBack: tally.text)
            }
        }

        @Test("nobody downloads a file with the key of another room, of a removed person, or by a path")
        func keys() async throws {
            try await Attack(number: 28, name: "downloads of others", settings: Self.settings).run { server in
                let (ann, files) = try Person.member("Tea", server)
                let (mallory, hers) = try Person.member("Tea", server)
                let (_, foreign) = try Person.member("Lair", server)
                let upload = try ann.send(Array("tea".utf8), server)
                let path = "\(files.path)/\(upload.id)"
                #expect(try server.get(path, hers.key).text == "tea")
                #expect(
                    try ann.verdict(.room(.remove(.init(connection: mallory.welcome.connection, ban: true)))) == "ok")
                var tally = Tally()
                let attempts: [(String, RoomFileKey)] = [
                    (path, hers.key), (path, foreign.key), (path, upload.secret),
                    (path, RoomFileKey(high: 0, low: 0)), ("\(foreign.path)/\(upload.id)", foreign.key),
                    ("\(files.path)/../../../confab.db", files.key), ("\(files.path)/%2e%2e%2fconfab.db", files.key),
                    ("\(files.path)/\(upload.id)%00", files.key), ("\(files.path)/", files.key),
                    ("\(path)x", files.key),
                ]
                for (path, key) in attempts {
                    let answer = try server.get(path, key)
                    tally.count("\(answer.status)")
                    #expect([400, 404].contains(answer.status), "\(path): \(answer)")
                    #expect(!answer.text.contains("tea"), "\(path)")
                }
                let bare = try RawSocket(port: server.port).ask(path)
                tally.count("\(bare.status)")
                #expect(bare.status == 404)
                #expect(try server.get(path, files.key).text == "tea", "the host still has it")
                return AttackOutcome(sent: "\(tally.total) downloads", cameBack: tally.text)
            }
        }

        /// Each held a socket and a file, and only sockets were counted against the limit of the process.
        @Test("downloads that are never read do not keep newcomers out")
        func unread() async throws {
            // On Linux all of 127.0.0.0/8 is this machine.
            guard let elsewhere = FloodedSession.elsewhere else { return }
            try await ServerProcess.run(descriptors: 256) { server in
                let (ann, files) = try Person.member("Tea", server)
                let upload = try ann.send([UInt8](repeating: 0x78, count: 4 << 20), server)
                let request =
                    "GET \(files.path)/\(upload.id) HTTP/1.1\r\nHost: confab.test\r\nAuthorization: Bearer \(files.key)\r\n\r\n"
                let unread = try ["127.0.0.1", elsewhere].flatMap { source in
                    try (0..<120).map { _ in
                        let socket = try RawSocket(port: server.port, from: source, receiveBuffer: 4096)
                        socket.sendWhatGoes(Array(request.utf8), within: .zero)
                        return socket
                    }
                }
                for number in 3..<23 {
                    let newcomer = "127.0.0.\(number)"
                    _ = try Person.arrive(port: server.port, from: newcomer)
                    #expect(try RawSocket(port: server.port, from: newcomer).ask("/ready").status == 200)
                }
                #expect(server.descriptors < 256)
                withExtendedLifetime(unread) {}
            }
        }

        @Test("a download that is read slowly ends when its person is removed from the room")
        func slowDownload() async throws {
            try await Attack(number: 28, name: "downloads of removed people", settings: Self.settings).run { server in
                let (ann, files) = try Person.member("Tea", server)
                let (mallory, hers) = try Person.member("Tea", server)
                // More than the kernel keeps for a client that does not read.
                let size = files.maxSize
                let upload = try ann.send([UInt8](repeating: 0x78, count: size), server)
                let path = "\(files.path)/\(upload.id)"
                func download(_ key: RoomFileKey) throws -> RawSocket {
                    let socket = try RawSocket(port: server.port, receiveBuffer: 1 << 16)
                    try socket.send(
                        "GET \(path) HTTP/1.1\r\nHost: confab.test\r\nAuthorization: Bearer \(key)\r\n"
                            + "Connection: close\r\n\r\n")
                    _ = try socket.receive(until: Array("\r\n\r\n".utf8))
                    return socket
                }
                let (removed, member) = (try download(hers.key), try download(files.key))
                #expect(try ann.verdict(.room(.remove(.init(connection: mallory.welcome.connection)))) == "ok")
                let received = try removed.receiveAll(within: .seconds(60)).count
                #expect(received < size)
                #expect(try member.receiveAll(within: .seconds(60)).count == size, "others get all of it")
                return AttackOutcome(sent: "a download of \(size) bytes", cameBack: "\(received) bytes")
            }
        }
    }
}
