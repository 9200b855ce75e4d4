import COpenSSL

/// The AES-GCM functions of Intel's Multi-Buffer Crypto for IPsec library, which encrypt a packet in a third of OpenSSL's
/// time on processors with VAES. The library is optional: it is loaded at run time if it is installed, and used only if
/// it computes the same as OpenSSL (docs/decisions/0028-ipsec-mb.md).
///
/// Sendable because the functions belong to a library that is never unloaded, and keep no state between calls.
struct IPsecMB: @unchecked Sendable {
    /// A kind of processor that the library has functions for. The raw value is the ending of their names. The cases
    /// are in order of speed, the fastest first.
    enum Variant: String, CaseIterable {
        case vaesAVX512 = "vaes_avx512"
        case avx2 = "avx_gen4"
        case sse

        var isSupportedByProcessor: Bool {
            switch self {
            case .vaesAVX512: confab_processor_has_vaes() != 0
            case .avx2: confab_processor_has_avx2() != 0
            case .sse: confab_processor_has_sse() != 0
            }
        }
    }

    /// A version of the library, such as 1.3.0.
    struct Version: CustomStringConvertible {
        let number: UInt32

        /// The versions whose functions and structures are known. Another major version may change them.
        var isSupported: Bool { number >> 16 == 1 }
        var description: String { "\(number >> 16).\(number >> 8 & 0xff).\(number & 0xff)" }
    }

    /// The size of the key schedule in version 1.3, rounded up to cache lines. The main branch has 1264 bytes.
    static let scheduleSize = 1024
    /// The largest key schedule that is accepted.
    static let maxScheduleSize = 2048
    /// The schedule's alignment in bytes, which is that of `struct gcm_key_data`.
    static let alignment = 64

    let functions: confab_ipsec_mb
    /// The size in bytes of a key schedule: what the library writes, but at least `scheduleSize`.
    let scheduleSize: Int

    /// Returns nil if the schedule is larger than `maxScheduleSize`.
    init?(functions: confab_ipsec_mb) {
        self.functions = functions
        guard let written = Self.written(by: functions), written <= Self.maxScheduleSize else { return nil }
        scheduleSize = max(Self.scheduleSize, (written + Self.alignment - 1) / Self.alignment * Self.alignment)
    }

    /// Returns nil if the library is not installed, if its version or the processor is not supported, or if it does not
    /// have all functions of the variant.
    init?(_ variant: Variant) {
        var functions = confab_ipsec_mb()
        guard
            Version(number: confab_ipsec_mb_version()).isSupported, variant.isSupportedByProcessor,
            confab_ipsec_mb_find(variant.rawValue, &functions) == 1
        else { return nil }
        self.init(functions: functions)
    }

    /// The library, if it may be used in this process, and the description for `SRTPImplementation.text`.
    static let shared: (library: IPsecMB?, description: String) = {
        let version = Version(number: confab_ipsec_mb_version())
        guard version.number != 0 else { return (nil, "OpenSSL") }
        guard version.isSupported else { return (nil, "OpenSSL, because ipsec-mb \(version) is not supported") }
        for variant in Variant.allCases {
            guard let library = IPsecMB(variant) else { continue }
            guard library.agreesWithOpenSSL() else {
                return (nil, "OpenSSL, because ipsec-mb \(version) \(variant.rawValue) failed its test")
            }
            return (library, "ipsec-mb \(version) \(variant.rawValue)")
        }
        return (nil, "OpenSSL, because ipsec-mb \(version) does not support the processor")
    }()

    /// Returns the number of bytes that the library writes for a key schedule; nil if it fills all of the memory here,
    /// so that it may have written beyond.
    private static func written(by functions: confab_ipsec_mb) -> Int? {
        let size = 2 * maxScheduleSize
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: alignment)
        defer { memory.deallocate() }
        var last = 0
        // Two patterns, because a byte of the schedule can equal that of one pattern.
        for pattern: UInt8 in [0xa5, 0x5a] {
            memory.initializeMemory(as: UInt8.self, repeating: pattern)
            functions.expand([UInt8](1...16), memory.baseAddress)
            last = max(last, 1 + (memory.lastIndex { $0 != pattern } ?? 0))
        }
        return last < size ? last : nil
    }
}

/// The library that encrypts SRTP packets with AES-GCM.
public enum SRTPImplementation {
    /// `OpenSSL`, or for example `ipsec-mb 1.3.0 vaes_avx512`. If Intel's library is installed but not used, the reason
    /// follows. The first use loads and tests the library, which takes some milliseconds.
    public static var text: String { IPsecMB.shared.description }
}
