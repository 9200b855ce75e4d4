import Foundation
import SwiftASN1
import TestSupport
import Testing
import X509

@testable import Server

@Suite struct LANAddressTests {
    @Test func reachableAddressesAreSortedWithoutDuplicates() throws {
        let given = [
            ("lo", "127.0.0.1"), ("lo", "::1"), ("docker0", "172.17.0.1"), ("eth0", "2001:db8::5"), ("eth0", "fe80::1"),
            ("eth0", "203.0.113.9"), ("eth0", "192.168.1.20"), ("eth0", "169.254.3.4"), ("eth0", "fd00::5"),
            ("wlan0", "192.168.1.20"),
        ].compactMap { name, text in IPAddress(text).map { LANAddress(interface: name, address: $0) } }
        let found = reachable(given).map(\.address.description)
        #expect(found == ["192.168.1.20", "203.0.113.9", "fd00::5", "2001:db8::5", "172.17.0.1"])
    }

    @Test func thisMachinesAddressesAreListed() throws {
        for found in try lanAddresses() {
            #expect(!found.address.isLoopback && !found.address.isLinkLocal)
        }
    }
}

@Suite struct LocalCertificateAuthorityTests {
    /// A temporary data directory that is removed when this value is released.
    private final class Directory {
        let path = NSTemporaryDirectory() + "/confab-test-" + UUID().uuidString
        deinit { try? FileManager.default.removeItem(atPath: path) }
    }

    private let now = Date(timeIntervalSince1970: 1_770_000_000)
    private let day: TimeInterval = 86400

    private func addresses(_ texts: String...) -> [IPAddress] { texts.compactMap { IPAddress($0) } }

    private func material(
        _ directory: Directory, _ addresses: [IPAddress], hostName: String? = "Kitchen.home", now: Date? = nil
    ) throws -> LocalCertificateAuthority.Material {
        try LocalCertificateAuthority(dataDirectory: directory.path)
            .material(addresses: addresses, hostName: hostName, now: now ?? self.now)
    }

    @Test func theCertificateMeetsThePhonesRequirements() throws {
        let directory = Directory()
        let made = try material(directory, addresses("192.168.1.20", "2001:db8::5"))
        #expect(
            made.subjects == [
                "kitchen.home", "kitchen.local", "localhost", "127.0.0.1", "::1", "192.168.1.20", "2001:db8::5",
            ])
        let authority = try Certificate(pemEncoded: made.authorityPEM)
        let certificate = try Certificate(pemEncoded: made.certificatePEM)
        #expect(try Certificate(derEncoded: made.authorityDER) == authority)
        #expect(authority.publicKey.isValidSignature(certificate.signature, for: certificate))
        #expect(certificate.issuer == authority.subject)
        #expect(certificate.notValidAfter.timeIntervalSince(certificate.notValidBefore) <= 397 * day)
        #expect(certificate.notValidBefore < now)
        #expect(try certificate.extensions.extendedKeyUsage.map(Array.init) == [.serverAuth])
        #expect(try certificate.extensions.basicConstraints == .notCertificateAuthority)
        #expect(try authority.extensions.basicConstraints == .isCertificateAuthority(maxPathLength: 0))
        #expect(try certificate.extensions.subjectAlternativeNames?.count == 7)
    }

    @Test func anRFC5280VerifierAcceptsTheChain() async throws {
        let directory = Directory()
        let made = try material(directory, addresses("192.168.1.20"), now: Date())
        let authority = try Certificate(pemEncoded: made.authorityPEM)
        for name in ["192.168.1.20", "kitchen.local"] {
            var verifier = Verifier(rootCertificates: CertificateStore([authority])) {
                RFC5280Policy()
                ServerIdentityPolicy(
                    serverHostname: name.hasSuffix("local") ? name : nil, serverIP: name.hasSuffix("local") ? nil : name
                )
            }
            let result = await verifier.validate(
                leaf: try Certificate(pemEncoded: made.certificatePEM), intermediates: CertificateStore())
            guard case .validCertificate = result else {
                Issue.record("\(name): \(result)")
                continue
            }
        }
    }

    @Test func theCertificateIsKeptUntilAddressesChangeOrItIsAboutToExpire() throws {
        let directory = Directory()
        let first = try material(directory, addresses("192.168.1.20", "10.0.0.2"))
        #expect(try material(directory, addresses("10.0.0.2", "192.168.1.20"), now: now + 300 * day) == first)
        let moved = try material(directory, addresses("192.168.1.21"))
        #expect(moved.certificatePEM != first.certificatePEM)
        #expect(moved.authorityPEM == first.authorityPEM)
        let late = try material(directory, addresses("192.168.1.21"), now: now + 370 * day)
        #expect(late.certificatePEM != moved.certificatePEM)
        #expect(late.authorityPEM == first.authorityPEM)
        #expect(late.expires > now + 700 * day)
    }

    @Test func anExpiredAuthorityIsReplaced() throws {
        let directory = Directory()
        let first = try material(directory, [])
        let late = try material(directory, [], now: now + 3640 * day)
        #expect(late.authorityPEM != first.authorityPEM)
        #expect(late.expires > now + 4000 * day)
        let kept = try String(contentsOfFile: directory.path + "/lan/authority-expired.pem", encoding: .utf8)
        #expect(kept.contains(first.authorityPEM), "the clock may be wrong")
    }

    @Test func aClockThatIsBehindTheAuthorityDoesNotMakeACertificateOfThePast() throws {
        let directory = Directory()
        let first = try material(directory, addresses("192.168.1.20"))
        let early = Date(timeIntervalSince1970: 60)
        #expect(try material(directory, addresses("192.168.1.20"), now: early) == first)
        let moved = try Certificate(
            pemEncoded: material(directory, addresses("192.168.1.21"), now: early).certificatePEM)
        #expect(moved.notValidBefore <= now && moved.notValidAfter > now + 300 * day)
    }

    @Test func onlyTheOwnerCanReadKeys() throws {
        let directory = Directory()
        _ = try material(directory, [])
        let files = try FileManager.default.contentsOfDirectory(atPath: directory.path + "/lan")
        #expect(Set(files) == ["authority.pem", "server.pem"])
        for file in files {
            let attributes = try FileManager.default.attributesOfItem(atPath: directory.path + "/lan/" + file)
            #expect(attributes[.posixPermissions] as? NSNumber == 0o600)
        }
        #expect(!"\(try material(directory, []))".contains("PRIVATE"))
    }

    @Test func aDamagedAuthorityIsAnErrorAndADamagedCertificateIsReplaced() throws {
        let directory = Directory()
        let first = try material(directory, [])
        try "nonsense".write(toFile: directory.path + "/lan/server.pem", atomically: false, encoding: .utf8)
        #expect(try material(directory, []).authorityPEM == first.authorityPEM)
        try "nonsense".write(toFile: directory.path + "/lan/authority.pem", atomically: false, encoding: .utf8)
        #expect(throws: DataDirectoryError.self) { try material(directory, []) }
    }

    @Test(arguments: [nil, "", "a b", "-x", "192.0.2.1", "ünï", "x..y", String(repeating: "a", count: 64)])
    func invalidHostNamesAreIgnored(name: String?) {
        #expect(LocalCertificateAuthority.subjects(addresses: [], hostName: name) == ["localhost", "127.0.0.1", "::1"])
    }
}

@Suite struct QRCodeTests {
    @Test func reedSolomonMatchesThePublishedExample() {
        // "HELLO WORLD" at 1-M, the example in most tutorials.
        let data: [UInt8] = [32, 91, 11, 120, 209, 114, 220, 77, 67, 64, 236, 17, 236, 17, 236, 17]
        #expect(ReedSolomon.correction(data, count: 10) == [196, 35, 39, 119, 235, 215, 231, 226, 93, 23])
    }

    @Test func textIsEncodedAsModeCountBytesAndPadding() {
        let codewords = QRCode.dataCodewords(Array("hi".utf8), version: 1, count: 16)
        #expect(
            codewords == [
                0x40, 0x26, 0x86, 0x90, 0xec, 0x11, 0xec, 0x11, 0xec, 0x11, 0xec, 0x11, 0xec, 0x11, 0xec, 0x11,
            ])
    }

    @Test func formatAndVersionBitsMatchTheStandardsTables() throws {
        // The format information for level M with mask 5 is 100000011001110 (annex C). It is read around the top left
        // corner.
        var matrix = QRMatrix(version: 1)
        matrix.drawFormat(errorCorrection: .medium, mask: 5)
        func format(_ matrix: QRMatrix) -> Int {
            let places = [
                (8, 0), (8, 1), (8, 2), (8, 3), (8, 4), (8, 5), (8, 7), (8, 8), (7, 8), (5, 8), (4, 8), (3, 8), (2, 8),
                (1, 8), (0, 8),
            ]
            return places.reduce(0) { $0 << 1 | (matrix.modules[$1.0 * matrix.size + $1.1] ? 1 : 0) }
        }
        #expect(format(matrix) == 0b100_0000_1100_1110)
        matrix.drawFormat(errorCorrection: .low, mask: 0)
        #expect(format(matrix) == 0b111_0111_1100_0100)
        // The version information for version 7 is 000111110010010100 (annex D).
        var seven = QRMatrix(version: 7)
        seven.drawFunctionPatterns()
        let bits = (0..<18).reversed().reduce(0) {
            $0 << 1 | (seven.modules[$1 / 3 * seven.size + seven.size - 11 + $1 % 3] ? 1 : 0)
        }
        #expect(bits == 0b000_1111_1001_0010_100)
    }

    @Test(arguments: [
        (14, 1), (15, 2), (26, 2), (42, 3), (62, 4), (84, 5), (106, 6), (122, 7), (152, 8), (180, 9), (213, 10),
    ])
    func theSmallestSufficientVersionIsUsed(bytes: Int, version: Int) throws {
        let code = try QRCode(String(repeating: "x", count: bytes))
        #expect(code.version == version)
        #expect(code.size == 17 + 4 * version)
    }

    @Test func textThatDoesNotFitIsAnErrorWithTheCapacity() throws {
        let error = try #require(throws: QRCode.TooLongError.self) { try QRCode(String(repeating: "x", count: 214)) }
        #expect(error.capacity == 213)
        #expect(throws: QRCode.TooLongError.self) {
            try QRCode(String(repeating: "x", count: 272), errorCorrection: .low)
        }
        #expect(try QRCode(String(repeating: "x", count: 271), errorCorrection: .low).version == 10)
    }

    @Test func theTerminalTextShowsAllModulesAndTheQuietZone() throws {
        let code = try QRCode("https://192.168.1.20:8080/")
        for usesColor in [true, false] {
            let lines = code.terminalText(usesColor: usesColor).split(separator: "\n").map { line in
                line.replacing(/\u{1b}\[[0-9;]*m/, with: "")
            }
            #expect(lines.count == (code.size + 9) / 2)
            for (index, line) in lines.enumerated() {
                #expect(line.count == code.size + 8)
                for (column, character) in line.enumerated() {
                    let upper = (character == "█" || character == "▀") == usesColor
                    #expect(upper == code[row: index * 2 - 4, column: column - 4])
                    let lower = (character == "█" || character == "▄") == usesColor
                    if index * 2 + 1 < code.size + 8 { #expect(lower == code[row: index * 2 - 3, column: column - 4]) }
                }
            }
        }
    }

    static let zbarimg = ["/usr/bin/zbarimg", "/usr/local/bin/zbarimg", "/opt/homebrew/bin/zbarimg"].first {
        FileManager.default.isExecutableFile(atPath: $0)
    }

    @Test(.enabled(if: zbarimg != nil, "zbarimg is not installed"), arguments: QRCode.ErrorCorrection.allCases)
    func anIndependentReaderReadsAllVersions(errorCorrection: QRCode.ErrorCorrection) async throws {
        for version in 1...10 {
            let capacity = QRCode.capacity(version: version, errorCorrection)
            let text = String(
                ("https://192.168.1.20:8080/?" + String(repeating: "Aa0-%", count: 60)).prefix(capacity / 2))
            let code = try QRCode(text, errorCorrection: errorCorrection)
            #expect(try await read(code) == text, "version \(code.version), mask \(code.mask)")
            let full = String(repeating: "z", count: capacity)
            #expect(try await read(QRCode(full, errorCorrection: errorCorrection)) == full, "version \(version)")
        }
    }

    private func read(_ code: QRCode) async throws -> String {
        let side = (code.size + 8) * 4
        var image = Data("P5 \(side) \(side) 255\n".utf8)
        for row in 0..<side {
            for column in 0..<side { image.append(code[row: row / 4 - 4, column: column / 4 - 4] ? 0 : 255) }
        }
        let file = NSTemporaryDirectory() + "/confab-qr-" + UUID().uuidString + ".pgm"
        try image.write(to: URL(fileURLWithPath: file))
        defer { try? FileManager.default.removeItem(atPath: file) }
        let zbarimg = try #require(Self.zbarimg)
        let read = try await blocking {
            try ChildProgram.run(zbarimg, ["--quiet", "--raw", "-Sdisable", "-Sqrcode.enable", file])
        }
        return read.text.trimmingCharacters(in: .newlines)
    }
}
