import Signaling
import Wire

extension FuzzTarget {
    /// A crowd at the hub's door, which comes, talks, drops and waits as the input has it. What must hold after each event
    /// and at the end is in `Crowd`.
    static let hub = FuzzTarget("hub", dictionary: "messages") { input throws(BrokenProperty) in
        var crowd = Crowd()
        var input = InputReader(input)
        while !input.isEmpty { try crowd.event(from: &input) }
        try crowd.goHome()
    }
}

/// The same numbers for the same input, or a finding would not come back.
struct CountingGenerator: RandomNumberGenerator, Sendable {
    private var state: UInt64 = 0

    /// SplitMix64 (Steele, Lea and Flood 2014).
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
