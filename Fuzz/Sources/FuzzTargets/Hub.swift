import Signaling
import Wire

extension FuzzTarget {
    /// Fuzzes the hub with clients that connect, send, drop and wait as the input determines. `Crowd` checks the invariants
    /// after each event and at the end.
    static let hub = FuzzTarget("hub", dictionary: "messages") { input throws(BrokenProperty) in
        var crowd = Crowd()
        var input = InputReader(input)
        while !input.isEmpty { try crowd.event(from: &input) }
        try crowd.goHome()
    }
}

/// A deterministic random number generator, so that a finding can be reproduced.
struct CountingGenerator: RandomNumberGenerator, Sendable {
    private var state: UInt64 = 0

    /// Returns the next number of SplitMix64 (Steele, Lea and Flood 2014).
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
