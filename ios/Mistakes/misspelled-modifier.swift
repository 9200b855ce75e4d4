// Expect: has no member 'paddding'
import SwiftUI

struct Wrong: View {
    var body: some View { Text(verbatim: "1").paddding() }
}
