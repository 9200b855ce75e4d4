/// Sine, cosine and their inverses, for the geometry of the globe.
///
/// This target imports no C library, and identical results on every machine mean identical cells.
enum Trigonometry {
    /// Returns the sine of an angle in radians, within two turns of zero.
    static func sin(_ angle: Double) -> Double {
        var angle = angle.remainder(dividingBy: 2 * .pi)
        if angle > .pi / 2 { angle = .pi - angle }
        if angle < -.pi / 2 { angle = -.pi - angle }
        return series(angle)
    }

    static func cos(_ angle: Double) -> Double { sin(angle + .pi / 2) }

    /// Evaluates the Taylor series for at most a quarter turn, where its next term is below 1e-17.
    private static func series(_ angle: Double) -> Double {
        let square = angle * angle
        // Inverse factorials, in three parts because a single expression would compile slowly.
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
        // Compute half the angle from its sine, which stays accurate where the cosine is flat.
        return value >= 0 ? 2 * asin(((1 - value) / 2).squareRoot()) : .pi - 2 * asin(((1 + value) / 2).squareRoot())
    }

    /// Returns the arcsine for 0…√½: the first terms of its series, refined by Newton's method, which doubles the correct
    /// digits with each step.
    private static func asin(_ value: Double) -> Double {
        let square = value * value
        var angle = value * (1 + square * (1 / 6.0 + square * (3 / 40.0)))
        for _ in 0..<3 { angle -= (sin(angle) - value) / cos(angle) }
        return angle
    }
}
