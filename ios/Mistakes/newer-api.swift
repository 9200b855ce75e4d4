// Expect: has no member 'glassEffect'
import SwiftUI

struct Wrong: View {
    var body: some View { Text(verbatim: "1").glassEffect() }
}
