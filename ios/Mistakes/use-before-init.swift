// Expect: used before being initialized
import Foundation
import UIKit

final class Tile: UIView {
    private let title: String

    override init(frame: CGRect) {
        print(title)
        title = ""
        super.init(frame: frame)
    }

    required init?(coder: NSCoder) { nil }
}
