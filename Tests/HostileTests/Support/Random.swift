/// Reproducible random numbers (SplitMix64, Steele, Lea and Flood 2014).
struct Random: RandomNumberGenerator {
    private var state: UInt64
    init(seed: UInt64) { state = seed }

    /// Creates a generator with a random seed for a case of attacks, and prints the seed so that a run can be
    /// reproduced.
    init(ofCase number: Int) {
        let seed = UInt64.random(in: 0 ... .max)
        print("hostile \(number): seed \(seed)")
        self.init(seed: seed)
    }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
