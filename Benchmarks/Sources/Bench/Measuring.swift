#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Returns the CPU time of all threads of this process in seconds. Other work on the same cores is not counted, so a busy
/// computer affects CPU time less than wall-clock time.
func processorSeconds() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}

/// The generator SplitMix64 (Steele, Lea and Flood 2014). Its numbers are reproducible from the seed, and it is too cheap to
/// affect measurements.
struct SplitMix64: RandomNumberGenerator {
    var state: UInt64
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

extension [Double] {
    var median: Double { quantile(0.5) }

    /// Returns the value that this share of the values does not exceed.
    func quantile(_ share: Double) -> Double {
        guard !isEmpty else { return .nan }
        return sorted()[Swift.min(count - 1, Int(Double(count) * share))]
    }
}

extension Double {
    func text(_ digits: Int) -> String {
        var scale = 1.0
        for _ in 0..<digits { scale *= 10 }
        let whole = (self * scale).rounded()
        guard whole.isFinite, abs(whole) < 1e15 else { return "\(self)" }
        let number = Int(whole)
        guard digits > 0 else { return "\(number)" }
        let figures = String(abs(number))
        let padded = String(repeating: "0", count: Swift.max(0, digits + 1 - figures.count)) + figures
        return (number < 0 ? "-" : "") + padded.dropLast(digits) + "." + padded.suffix(digits)
    }
}

/// Returns the milliseconds since 1970, for tokens.
func now() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
}
