// Expect: in a synchronous nonisolated context
import Foundation
import UIKit

func make() -> UIView { UIView(frame: .zero) }
