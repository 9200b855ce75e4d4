import COpenSSL
import Testing

@testable import RTC

/// Tests SRTP with the examples of RFC 3711 and RFC 7714.
@Suite struct SRTPVectorTests {
    private static let gcmKeys = SRTPSessionKeys(
        encryptionKey: hex("000102030405060708090a0b0c0d0e0f"), authenticationKey: [],
        salt: hex("517569642070726f2071756f"))

    @Test func counterModeProducesTheKeyStreamOfRFC3711AppendixB2() throws {
        let context = try #require(confab_aes_ctr_new(hex("2B7E151628AED2A6ABF7158809CF4F3C")))
        defer { EVP_CIPHER_CTX_free(context) }
        let salt = hex("F0F1F2F3F4F5F6F7F8F9FAFBFCFD")
        for (counter, expected) in [
            (
                "0000",
                "E03EAD0935C95E80E166B16DD92B4EB4D23513162B02D0F72A43A2FE4A5F97AB41E95B3BB0A2E8DD477901E4FCA894C0"
            ),
            (
                "FEFF",
                "EC8CDF7398607CB0F2D21675EA9EA1E4362B7C3C6773516318A077D7FC5073AE6A2CC3787889374FBEB4C81B17BA6C44"
            ),
        ] {
            var stream = [UInt8](repeating: 0, count: 48)
            #expect(confab_ctr_begin(context, salt + hex(counter)) == 1)
            let done = stream.withUnsafeMutableBytes {
                confab_cipher_update(context, $0.baseAddress, $0.count, $0.baseAddress)
            }
            #expect(done == 1)
            #expect(stream == hex(expected))
        }
    }

    @Test func sessionKeysAreThoseOfRFC3711AppendixB3() throws {
        let keys = try #require(
            SRTPSessionKeys(
                profile: .aes128CMSHA1, masterKey: hex("E1F97A0D3E018BE0D64FA32C06DE4139"),
                masterSalt: hex("0EC675AD498AFEEBB6960B3AABE6"), kind: .rtp))
        #expect(keys.encryptionKey == hex("C61E7A93744F39EE10734AFE3FF7A087"))
        #expect(keys.salt == hex("30CBBC08863D8C85D49DB34A9AE1"))
        // The first 20 of the 94 bytes that the example derives.
        #expect(keys.authenticationKey == hex("CEBE321F6FF7716B6FD4AB49AF256A156D38BAA4"))
    }

    @Test(arguments: SRTPCase.gcm) func aGCMPacketIsThatOfRFC7714Section16(_ tested: SRTPCase) throws {
        let (keys, library) = (Self.gcmKeys, tested.library)
        let sender = try #require(
            SRTPSender(profile: .aeadAES128GCM, media: keys, control: keys, library: library))
        let receiver = try #require(
            SRTPReceiver(profile: .aeadAES128GCM, media: keys, control: keys, library: library))
        let packet = PlainPacket(
            header: hex("8040f17b 8041f8d3 5501a0b2"), payload: Array("Gallia est omnis divisa in partes tres".utf8))
        let datagram = hex(
            """
            8040f17b 8041f8d3 5501a0b2 f24de3a3 fb34de6c acba861c 9d7e4bca be633bd5 0d294e6f 42a5f47a 51c7d19b 36de3adf
            8833899d 7f27beb1 6a9152cf 765ee439 0cce
            """)
        #expect(sender.protect(packet) == datagram)
        #expect(receiver.open(datagram) == .packet(packet.whole))
    }

    /// §16.1.3, where the whole packet is associated data.
    @Test(arguments: SRTPCase.gcm) func aGCMTagAloneIsThatOfRFC7714Section16(_ tested: SRTPCase) throws {
        let key = try #require(GCMKey(Self.gcmKeys.encryptionKey, .sealing, library: tested.library))
        defer { key.free() }
        let packet = hex("8040f17b 8041f8d3 5501a0b2") + Array("Gallia est omnis divisa in partes tres".utf8)
        let nonce = (UInt64(0x5175_3c65_80c2_726f).bigEndian, UInt64(0x2071_8414_0000_0000).bigEndian)
        #expect(key.sealed([], header: packet, nonce: nonce) == hex("22493f82d2bce397e9d79e3b19aa4216"))
    }

    private static let controlPacket = hex(
        """
        81c8000d 4d617273 4e545031 4e545032 52545020 0000042a 0000e930 4c756e61 deadbeef deadbeef deadbeef deadbeef
        deadbeef
        """)

    @Test(arguments: SRTPCase.gcm) func aGCMControlPacketIsThatOfRFC7714Section17(_ tested: SRTPCase) throws {
        let (keys, library) = (Self.gcmKeys, tested.library)
        let sender = try #require(
            SRTPSender(
                profile: .aeadAES128GCM, media: keys, control: keys, nextControlIndex: 0x5d4, library: library))
        let receiver = try #require(
            SRTPReceiver(profile: .aeadAES128GCM, media: keys, control: keys, library: library))
        let datagram = hex(
            """
            81c8000d 4d617273 63e94885 dcdab67c a727d766 2f6b7e99 7ff5c0f7 6c06f32d c676a5f1 730d6fda 4ce09b46 86303ded
            0bb9275b c84aa458 96cf4d2f c5abf872 45d9eade 800005d4
            """)
        #expect(sender.protectControl(Self.controlPacket) == datagram)
        #expect(receiver.openControl(datagram) == .packet(Self.controlPacket))
    }

    /// §17.3, an authenticated but unencrypted packet, which is rejected.
    @Test func anUnencryptedControlPacketIsRejected() throws {
        let receiver = try #require(SRTPReceiver(profile: .aeadAES128GCM, media: Self.gcmKeys, control: Self.gcmKeys))
        let datagram = Self.controlPacket + hex("841dd968 3dd78ec9 2ae58790 125f62b3 000005d4")
        #expect(receiver.openControl(datagram) == .failed(.malformed))
    }

    @Test(arguments: SRTPProfile.allCases) func exportedKeysAreSplitInTheOrderOfRFC5764(_ profile: SRTPProfile) throws {
        let exported = (0..<profile.exportLength).map { UInt8($0) }
        let keys = try #require(SRTPProfile.KeyingMaterial(exported: exported, profile: profile))
        #expect(keys.clientKey == Array(0..<16))
        #expect(keys.serverKey == Array(16..<32))
        #expect(keys.clientSalt == Array(exported[32..<(32 + profile.saltLength)]))
        #expect(keys.serverSalt == Array(exported[(32 + profile.saltLength)...]))
        #expect(SRTPProfile.KeyingMaterial(exported: exported + [0], profile: profile) == nil)
        #expect(SRTPProfile.KeyingMaterial(exported: exported.dropLast(), profile: profile) == nil)
    }
}
