/// The matrix of modules while a code is drawn. Rows and columns count from the top left.
struct QRMatrix {
    let version: Int
    let size: Int
    private(set) var modules: [Bool]
    /// For each module, whether it is a function module. Those contain no data and are never masked.
    private var isFunction: [Bool]

    /// - Parameter version: 1...10.
    init(version: Int) {
        self.version = version
        size = 17 + 4 * version
        modules = Array(repeating: false, count: size * size)
        isFunction = modules
    }

    private subscript(row: Int, column: Int) -> Bool { modules[row * size + column] }

    private mutating func setFunction(_ row: Int, _ column: Int, _ isDark: Bool) {
        guard (0..<size).contains(row), (0..<size).contains(column) else { return }
        modules[row * size + column] = isDark
        isFunction[row * size + column] = true
    }

    mutating func drawFunctionPatterns() {
        for index in 0..<size {
            setFunction(6, index, index % 2 == 0)
            setFunction(index, 6, index % 2 == 0)
        }
        for (row, column) in [(3, 3), (3, size - 4), (size - 4, 3)] { drawFinder(row, column) }
        let centers = Self.alignment[version - 1]
        for row in centers {
            for column in centers where !isFinderCorner(row, column) { drawAlignment(row, column) }
        }
        // Reserve the modules of the format information. Their values depend on the mask, which is chosen later.
        drawFormat(errorCorrection: .low, mask: 0)
        drawVersion()
    }

    /// For each version from 1, the rows of the centers of the alignment patterns (annex E). Their columns have the
    /// same numbers.
    private static let alignment: [[Int]] = [
        [], [6, 18], [6, 22], [6, 26], [6, 30], [6, 34], [6, 22, 38], [6, 24, 42], [6, 26, 46], [6, 28, 50],
    ]

    private func isFinderCorner(_ row: Int, _ column: Int) -> Bool {
        (row == 6 && column == 6) || (row == 6 && column == size - 7) || (row == size - 7 && column == 6)
    }

    /// Draws a finder pattern with its separator.
    private mutating func drawFinder(_ row: Int, _ column: Int) {
        for down in -4...4 {
            for across in -4...4 {
                let distance = max(abs(down), abs(across))
                setFunction(row + down, column + across, distance != 2 && distance != 4)
            }
        }
    }

    private mutating func drawAlignment(_ row: Int, _ column: Int) {
        for down in -2...2 {
            for across in -2...2 { setFunction(row + down, column + across, max(abs(down), abs(across)) != 1) }
        }
    }

    /// Draws two copies of the format information, which is the level and the mask with a BCH code (§7.9).
    mutating func drawFormat(errorCorrection: QRCode.ErrorCorrection, mask: Int) {
        let data = (errorCorrection == .low ? 0b01 : 0b00) << 3 | mask
        let bits = (data << 10 | Self.remainder(data << 10, by: 0b101_0011_0111, degree: 10)) ^ 0b101_0100_0001_0010
        for index in 0..<15 {
            let isDark = bits >> index & 1 == 1
            // Draw the first copy around the top left corner, skipping the timing pattern.
            switch index {
            case 0...5: setFunction(index, 8, isDark)
            case 6, 7: setFunction(index + 1, 8, isDark)
            case 8: setFunction(8, 7, isDark)
            default: setFunction(8, 14 - index, isDark)
            }
            // Draw the second copy, split between the top right and the bottom left corner.
            if index < 8 { setFunction(8, size - 1 - index, isDark) } else { setFunction(size - 15 + index, 8, isDark) }
        }
        setFunction(size - 8, 8, true)
    }

    /// Draws two copies of the version with its Golay code. Codes below version 7 do not contain their version
    /// (§7.10).
    private mutating func drawVersion() {
        guard version >= 7 else { return }
        let bits = version << 12 | Self.remainder(version << 12, by: 0b1_1111_0010_0101, degree: 12)
        for index in 0..<18 {
            let isDark = bits >> index & 1 == 1
            setFunction(index / 3, size - 11 + index % 3, isDark)
            setFunction(size - 11 + index % 3, index / 3, isDark)
        }
    }

    /// Divides polynomials over GF(2) and returns the remainder. `value` has up to eight bits more than the divisor's degree.
    private static func remainder(_ value: Int, by divisor: Int, degree: Int) -> Int {
        var value = value
        for shift in (0..<8).reversed() where value >> (shift + degree) & 1 == 1 { value ^= divisor << shift }
        return value
    }

    /// Draws the codewords in pairs of columns from the right, alternately upward and downward, skipping function modules
    /// (§7.7.3).
    mutating func drawCodewords(_ codewords: [UInt8]) {
        var bits = codewords.lazy.flatMap { byte in (0..<8).reversed().map { byte >> UInt8($0) & 1 == 1 } }
            .makeIterator()
        var isUpward = true
        for right in stride(from: size - 1, to: 0, by: -2) {
            // Skip the column of the vertical timing pattern.
            let right = right <= 6 ? right - 1 : right
            for step in 0..<size {
                let row = isUpward ? size - 1 - step : step
                for column in [right, right - 1] where !isFunction[row * size + column] {
                    // Remainder bits stay light.
                    modules[row * size + column] = bits.next() ?? false
                }
            }
            isUpward.toggle()
        }
    }

    /// Inverts the data modules that a mask selects (§7.8.2).
    ///
    /// - Parameter mask: 0...7.
    mutating func apply(mask: Int) {
        for row in 0..<size {
            for column in 0..<size where !isFunction[row * size + column] && Self.inverts(mask, row, column) {
                modules[row * size + column].toggle()
            }
        }
    }

    private static func inverts(_ mask: Int, _ row: Int, _ column: Int) -> Bool {
        switch mask {
        case 0: (row + column) % 2 == 0
        case 1: row % 2 == 0
        case 2: column % 3 == 0
        case 3: (row + column) % 3 == 0
        case 4: (row / 2 + column / 3) % 2 == 0
        case 5: row * column % 2 + row * column % 3 == 0
        case 6: (row * column % 2 + row * column % 3) % 2 == 0
        default: ((row + column) % 2 + row * column % 3) % 2 == 0
        }
    }

    /// The penalty of this pattern by the four rules of §7.8.3. A code with a lower penalty is easier to scan.
    var penalty: Int {
        let rows = (0..<size).map { row in (0..<size).map { self[row, $0] } }
        let columns = (0..<size).map { column in (0..<size).map { self[$0, column] } }
        var result = (rows + columns).reduce(0) { $0 + Self.penalty(ofLine: $1) }
        for row in 0..<(size - 1) {
            for column in 0..<(size - 1) {
                let first = self[row, column]
                let isBlock =
                    first == self[row, column + 1] && first == self[row + 1, column]
                    && first == self[row + 1, column + 1]
                if isBlock { result += 3 }
            }
        }
        let percent = modules.count { $0 } * 100 / modules.count
        return result + abs(percent - 50) / 5 * 10
    }

    /// Returns the penalty for runs of five or more and for sequences that resemble a finder pattern.
    private static func penalty(ofLine line: [Bool]) -> Int {
        var result = 0
        var run = 0
        for index in line.indices {
            run = index > 0 && line[index] == line[index - 1] ? run + 1 : 1
            if run == 5 { result += 3 } else if run > 5 { result += 1 }
        }
        for start in 0..<max(0, line.count - 10) {
            let window = line[start..<(start + 11)]
            if window.elementsEqual(finderThenLight) || window.elementsEqual(lightThenFinder) { result += 40 }
        }
        return result
    }

    private static let finderThenLight = [true, false, true, true, true, false, true, false, false, false, false]
    private static let lightThenFinder = Array(finderThenLight.reversed())
}
