/// An H.264 profile, declared by the first two bytes of `profile-level-id` (RFC 6184 §8.1, table 5).
public enum H264Profile: Hashable, Sendable {
    case constrainedBaseline, baseline, main, constrainedHigh, high
    /// Another profile, with its two bytes. Such profiles are compatible only if they are equal.
    case other(UInt16)

    /// Finds the profile that a `profile-level-id` declares.
    ///
    /// - Parameter profileLevelID: three bytes such as `0x42e01f`. The level does not matter.
    public init(profileLevelID: UInt32) {
        let profile = UInt8(truncatingIfNeeded: profileLevelID >> 16)
        let flags = UInt8(truncatingIfNeeded: profileLevelID >> 8)
        switch profile {
        case 0x42: self = flags & 0x40 != 0 ? .constrainedBaseline : .baseline
        case 0x4d where flags & 0x80 != 0: self = .constrainedBaseline
        case 0x4d where flags & 0x20 == 0: self = .main
        case 0x58 where flags & 0xc0 == 0xc0: self = .constrainedBaseline
        case 0x64 where flags == 0x0c: self = .constrainedHigh
        case 0x64 where flags == 0: self = .high
        default: self = .other(UInt16(truncatingIfNeeded: profileLevelID >> 8))
        }
    }

    /// Returns whether a decoder for this profile decodes every stream of `other`. Constrained Baseline is a subset of
    /// all other named profiles, and Main and Constrained High are subsets of High. Baseline has tools that Main and
    /// High do not have.
    public func decodes(_ other: H264Profile) -> Bool {
        switch (self, other) {
        case (.baseline, .constrainedBaseline), (.main, .constrainedBaseline), (.constrainedHigh, .constrainedBaseline),
            (.high, .constrainedBaseline), (.high, .main), (.high, .constrainedHigh):
            true
        default: self == other
        }
    }
}
