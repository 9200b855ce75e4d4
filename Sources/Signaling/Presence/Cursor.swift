import Wire

/// The position at which a page of people nearby ends: a distance bucket, and a place in the daily order.
///
/// A cursor reveals nothing about locations that the rows of the pages do not show: the bucket is the one in which the
/// search stopped, and the place is a keyed hash.
struct Cursor: Equatable, Sendable {
    var bucket: Int
    var place: UInt64

    init(bucket: Int, place: UInt64) { (self.bucket, self.place) = (bucket, place) }

    init?(_ text: String) {
        let bytes = Array(text.utf8)
        guard bytes.count == 17, let bucket = Self.digit(bytes[0]), bucket < Distance.buckets else { return nil }
        var place: UInt64 = 0
        for byte in bytes.dropFirst() {
            guard let digit = Self.digit(byte) else { return nil }
            place = place << 4 | UInt64(digit)
        }
        (self.bucket, self.place) = (bucket, place)
    }

    var text: String {
        let digits = String(place, radix: 16)
        return "\(bucket)" + String(repeating: "0", count: 16 - digits.count) + digits
    }

    private static func digit(_ byte: UInt8) -> Int? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): Int(byte - UInt8(ascii: "0"))
        case UInt8(ascii: "a")...UInt8(ascii: "f"): Int(byte - UInt8(ascii: "a") + 10)
        default: nil
        }
    }
}
