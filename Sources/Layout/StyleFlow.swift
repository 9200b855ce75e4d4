/// Places the boxes of streams in a container, one after another (CSS 2.2 §9).
struct StyleFlow {
    let width: Double
    let height: Double
    /// Where the next block begins.
    private var y = 0.0
    /// The bottom margin of the last block, which the next block's top margin overlaps.
    private var lastMargin = 0.0
    /// The row of inline boxes that is being filled.
    private var row: (x: Double, height: Double)?
    private var floats: [(isLeft: Bool, box: StyleBox)] = []

    init(width: Double, height: Double) { (self.width, self.height) = (width, height) }

    private struct Margins {
        var (top, right, bottom, left) = (0.0, 0.0, 0.0, 0.0)
    }

    /// Returns the box of the next stream, without its margins.
    mutating func place(_ style: StreamStyle) -> StyleBox {
        func margin(_ property: Stylesheet.LengthProperty) -> Double { style.length(property, of: width) ?? 0 }
        var margins = Margins()
        (margins.top, margins.right) = (margin(.marginTop), margin(.marginRight))
        (margins.bottom, margins.left) = (margin(.marginBottom), margin(.marginLeft))
        if style.isAbsolute { return absolute(style, margins) }
        let size = size(style, margins)
        if style.float != .none { return shifted(float(style, size, margins), style) }
        if style.clear != .none {
            endRow()
            y = max(y, bottom(of: style.clear))
        }
        let box = style.display == .block ? block(size, margins) : inline(size, margins)
        return shifted(box, style)
    }

    private func size(
        _ style: StreamStyle, _ margins: Margins, width given: Double? = nil, height givenHeight: Double? = nil
    )
        -> (width: Double, height: Double)
    {
        let wanted = style.length(.width, of: width) ?? given ?? max(0, width - margins.left - margins.right)
        let limited = min(wanted, style.length(.maxWidth, of: width) ?? wanted)
        let wide = max(limited, style.length(.minWidth, of: width) ?? 0)
        let tall = style.length(.height, of: height) ?? givenHeight ?? wide * height / width
        let limitedTall = min(tall, style.length(.maxHeight, of: height) ?? tall)
        return (wide, max(limitedTall, style.length(.minHeight, of: height) ?? 0))
    }

    /// Moves a box whose position is relative.
    private func shifted(_ box: StyleBox, _ style: StreamStyle) -> StyleBox {
        var box = box
        // `left` outweighs `right`, and `top` outweighs `bottom` (CSS 2.2 §9.4.3).
        box.x += style.length(.left, of: width) ?? style.length(.right, of: width).map { -$0 } ?? 0
        box.y += style.length(.top, of: height) ?? style.length(.bottom, of: height).map { -$0 } ?? 0
        return box
    }

    /// Places a box by its edges (CSS 2.2 §10.3.7 and §10.6.4). Without any, it is where a block would be.
    private func absolute(_ style: StreamStyle, _ margins: Margins) -> StyleBox {
        let (left, right) = (style.length(.left, of: width), style.length(.right, of: width))
        let (top, bottom) = (style.length(.top, of: height), style.length(.bottom, of: height))
        let between = left.flatMap { left in right.map { width - left - $0 - margins.left - margins.right } }
        let above = top.flatMap { top in bottom.map { height - top - $0 - margins.top - margins.bottom } }
        let size = size(style, margins, width: between.map { max(0, $0) }, height: above.map { max(0, $0) })
        let x = left.map { $0 + margins.left } ?? right.map { width - $0 - margins.right - size.width } ?? margins.left
        let y =
            top.map { $0 + margins.top } ?? bottom.map { height - $0 - margins.bottom - size.height }
            ?? self.y + margins.top
        return StyleBox(x: x, y: y, width: size.width, height: size.height)
    }

    private mutating func block(_ size: (width: Double, height: Double), _ margins: Margins) -> StyleBox {
        endRow()
        let top = y + max(margins.top - max(0, lastMargin), 0) + min(margins.top, 0)
        y = top + size.height + margins.bottom
        lastMargin = margins.bottom
        return StyleBox(x: margins.left, y: top, width: size.width, height: size.height)
    }

    private mutating func inline(_ size: (width: Double, height: Double), _ margins: Margins) -> StyleBox {
        let (wide, tall) = (margins.left + size.width + margins.right, margins.top + size.height + margins.bottom)
        if let row, row.x > 0, row.x + wide > width + Self.tolerance { endRow() }
        let x = row?.x ?? 0
        row = (x + wide, max(row?.height ?? 0, tall))
        return StyleBox(x: x + margins.left, y: y + margins.top, width: size.width, height: size.height)
    }

    private mutating func endRow() {
        guard let ended = row else { return }
        (y, row, lastMargin) = (y + ended.height, nil, 0)
    }

    /// Percentages such as 33.34 % three times exceed the width by a fraction of a pixel, and still fit.
    private static let tolerance = 0.5

    /// Places a float at the side, as high as possible, but not above an earlier one (CSS 2.2 §9.5.1).
    private mutating func float(
        _ style: StreamStyle, _ size: (width: Double, height: Double), _ margins: Margins
    ) -> StyleBox {
        let (wide, tall) = (margins.left + size.width + margins.right, margins.top + size.height + margins.bottom)
        var top = max(y, floats.last?.box.y ?? 0, bottom(of: style.clear))
        let isLeft = style.float == .left
        // At most as many steps as there are floats, because each step passes the bottom of one.
        for _ in 0...floats.count {
            let beside = floats.filter { $0.box.y < top + max(tall, 1) && top < $0.box.y + $0.box.height }
            let left = beside.filter(\.isLeft).map { $0.box.x + $0.box.width }.max() ?? 0
            let right = beside.filter { !$0.isLeft }.map(\.box.x).min() ?? width
            let next = beside.map { $0.box.y + $0.box.height }.filter { $0 > top }.min()
            if let next, left + wide > right + Self.tolerance {
                top = next
                continue
            }
            let x = isLeft ? left : right - wide
            floats.append((isLeft, StyleBox(x: x, y: top, width: wide, height: tall)))
            return StyleBox(x: x + margins.left, y: top + margins.top, width: size.width, height: size.height)
        }
        return StyleBox(x: 0, y: top, width: size.width, height: size.height)
    }

    /// The bottom of the floats at these sides.
    private func bottom(of sides: StyleClear) -> Double {
        floats.filter { sides == .both || sides == ($0.isLeft ? .left : .right) }.map { $0.box.y + $0.box.height }.max()
            ?? 0
    }
}
