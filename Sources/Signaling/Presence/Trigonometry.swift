/// Sine, cosine and their inverses, for the geometry of the globe.
///
/// Written here because this target imports no C library. The results are the same on every computer, so a location is always
/// in the same cell.
enum Trigonometry {
    /// Returns the sine of an angle in radians. It must be between -4π and 4π.
    static func sin(_ angle: Double) -> Double {
        var angle = angle.remainder(dividingBy: 2 * .pi)
        if angle > .pi / 2 { angle = .pi - angle }
        if angle < -.pi / 2 { angle = -.pi - angle }
        return series(angle)
    }

    static func cos(_ angle: Double) -> Double { sin(angle + .pi / 2) }

    /// Evaluates the Taylor series of the sine for an angle between -π/2 and π/2. For such an angle, the first omitted
    /// term is below 1e-17.
    private static func series(_ angle: Double) -> Double {
        let square = angle * angle
        // The coefficients are inverse factorials. The sum is split into three expressions, because a single one would compile
        // slowly.
        let far = 1 / 121_645_100_408_832_000.0 - square / 51_090_942_171_709_440_000.0
        let middle =
            -1 / 39_916_800.0 + square
            * (1 / 6_227_020_800.0 + square
                * (-1 / 1_307_674_368_000.0
                    + square * (1 / 355_687_428_096_000.0 - square * far)))
        let near =
            -1 / 6.0 + square
            * (1 / 120.0 + square
                * (-1 / 5040.0 + square
                    * (1 / 362_880.0
                        + square * middle)))
        return angle * (1 + square * near)
    }

    /// Returns the angle from 0 to π with this cosine. Values outside -1…1 are clamped.
    static func acos(_ value: Double) -> Double {
        let value = min(1, max(-1, value))
        // Compute half the angle from its sine, because the cosine is too flat near 0 and π to be accurate.
        return value >= 0 ? 2 * asin(((1 - value) / 2).squareRoot()) : .pi - 2 * asin(((1 + value) / 2).squareRoot())
    }

    /// Returns the arcsine of a value from 0 to √½. Starts with the first terms of the Taylor series, and refines the result
    /// with Newton's method, which doubles the number of correct digits in each step.
    private static func asin(_ value: Double) -> Double {
        let square = value * value
        var angle = value * (1 + square * (1 / 6.0 + square * (3 / 40.0)))
        for _ in 0..<3 { angle -= (sin(angle) - value) / cos(angle) }
        return angle
    }
}
