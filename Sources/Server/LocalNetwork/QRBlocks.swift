/// How the codewords of a QR code are divided into blocks, each with its own error correction codewords (ISO/IEC
/// 18004, table 9).
struct QRBlocks {
    /// The number of correction codewords of each block.
    let correctionCount: Int
    /// The number of data codewords of each block, shorter blocks first.
    let dataCounts: [Int]

    var dataCount: Int { dataCounts.reduce(0, +) }

    /// For each version from 1: the total number of codewords, then for levels L and M the number of correction codewords per
    /// block and the number of blocks.
    private static let table: [(total: Int, low: (Int, Int), medium: (Int, Int))] = [
        (26, (7, 1), (10, 1)), (44, (10, 1), (16, 1)), (70, (15, 1), (26, 1)), (100, (20, 1), (18, 2)),
        (134, (26, 1), (24, 2)), (172, (18, 2), (16, 4)), (196, (20, 2), (18, 4)), (242, (24, 2), (22, 4)),
        (292, (30, 2), (22, 5)), (346, (18, 4), (26, 5)),
    ]

    /// - Parameter version: 1...10.
    init(version: Int, errorCorrection: QRCode.ErrorCorrection) {
        let row = Self.table[version - 1]
        let (correction, blocks) = errorCorrection == .low ? row.low : row.medium
        correctionCount = correction
        let data = row.total - correction * blocks
        let longer = data % blocks
        dataCounts = (0..<blocks).map { data / blocks + ($0 < blocks - longer ? 0 : 1) }
    }

    /// Returns data and correction codewords in drawing order (§7.6): the first of every block, the second of every block, and
    /// so on. Local damage then affects all blocks a little instead of destroying one.
    func interleaved(_ data: [UInt8]) -> [UInt8] {
        var blocks: [ArraySlice<UInt8>] = []
        var rest = data[...]
        for count in dataCounts {
            blocks.append(rest.prefix(count))
            rest = rest.dropFirst(count)
        }
        let corrections = blocks.map { ReedSolomon.correction(Array($0), count: correctionCount) }
        var result: [UInt8] = []
        for index in 0..<(dataCounts.max() ?? 0) {
            for block in blocks where index < block.count { result.append(block[block.startIndex + index]) }
        }
        for index in 0..<correctionCount { result += corrections.map { $0[index] } }
        return result
    }
}

/// Reed–Solomon codes over GF(256) with the polynomial x⁸+x⁴+x³+x²+1 (0x11d).
enum ReedSolomon {
    /// Returns the correction codewords: for n = `count`, the remainder of the data times xⁿ divided by
    /// (x−α⁰)(x−α¹)…(x−αⁿ⁻¹).
    static func correction(_ data: [UInt8], count: Int) -> [UInt8] {
        let divisor = generator(degree: count)
        var remainder = [UInt8](repeating: 0, count: count)
        for byte in data {
            let factor = byte ^ remainder.removeFirst()
            remainder.append(0)
            for index in remainder.indices { remainder[index] ^= multiply(divisor[index], factor) }
        }
        return remainder
    }

    /// Returns the coefficients of (x−α⁰)(x−α¹)…(x−αⁿ⁻¹) for n = `degree`, from the highest power down, without the
    /// leading 1.
    private static func generator(degree: Int) -> [UInt8] {
        var result = [UInt8](repeating: 0, count: degree - 1) + [1]
        var root: UInt8 = 1
        for _ in 0..<degree {
            for index in result.indices {
                result[index] = multiply(result[index], root) ^ (index + 1 < degree ? result[index + 1] : 0)
            }
            root = multiply(root, 2)
        }
        return result
    }

    private static func multiply(_ left: UInt8, _ right: UInt8) -> UInt8 {
        var product = 0
        for shift in stride(from: 7, through: 0, by: -1) {
            product = product << 1 ^ (product >> 7 & 1) * 0x11d
            product ^= Int(right >> UInt8(shift) & 1) * Int(left)
        }
        return UInt8(truncatingIfNeeded: product)
    }
}
