/// Fits a line through the latest points by least squares. It keeps running sums, so that the cost of adding a point
/// does not depend on the length of the window.
struct SlidingLinearFit: Sendable {
    /// The number of points.
    static let window = 20
    /// If the denominator of the slope is smaller than this, all points have the same x. Arrivals are reported in
    /// steps of 0.25 ms. With one such step between one of 20 points and the others, the denominator is 1.2.
    private static let smallest = 1.0

    private var points = ContiguousArray<SIMD2<Double>>(repeating: .zero, count: window)
    /// The position of the next point.
    private var place = 0
    /// Whether all positions have a point.
    private var isFull = false
    /// A point near the others. The sums use distances from it.
    private var origin = SIMD2<Double>.zero
    private var sum = SIMD2<Double>.zero
    /// The sums of the squares of x, and of the products of x and y.
    private var products = SIMD2<Double>.zero

    /// Adds a point in place of the oldest one.
    @inline(__always)
    mutating func add(_ point: SIMD2<Double>) {
        if place == 0 {
            begin(near: point)
        } else {
            if isFull { count(points[place], -1) }
            count(point, 1)
        }
        points[place] = point
        place += 1
        if place == Self.window { (place, isFull) = (0, true) }
    }

    /// The slope of the line; nil while the window is not full, or if all points have the same x.
    @inline(__always)
    var slope: Double? {
        guard isFull else { return nil }
        let scaled = products * Double(Self.window) - sum * sum.x
        return scaled.x >= Self.smallest ? scaled.y / scaled.x : nil
    }

    /// Moves the origin, and computes the sums again from all points except the first, which is about to be replaced.
    /// Done once per window, before the rounding errors of small differences between large numbers become
    /// significant.
    private mutating func begin(near point: SIMD2<Double>) {
        (origin, sum, products) = (point, .zero, .zero)
        guard isFull else { return }
        for point in points[1...] { count(point, 1) }
    }

    @inline(__always)
    private mutating func count(_ point: SIMD2<Double>, _ sign: Double) {
        let offset = point - origin
        sum += offset * sign
        products += offset * (offset.x * sign)
    }
}
